"""firsthand_edge: records people's hands at work for robot learning, and lets only provable episodes leave the rig.

The data's way is the order of the rooms; a room imports only rooms above it.

    model, errors, config, log, process   frozen nouns; one error tree; the one TOML reader; structlog; owned children
    spec        the written contract: required streams, ceiling, rules; canonical digest; keys and signatures
    clock       device time and host time to rig time
    trigger     who makes the pulses
    sensors     the seam, one file a driver, the worker process and its supervisor
    record      samples to one episode; recovery of a torn one
    gate        figures, rules, verdict; audits anybody's recording
    spool       episodes on disk: folders are states; the chain
    upload      stores
    qa          at the store: proof of episodes, coverage, reject rates
    daemon      the processes; control and status sockets
    cli         the only place that parses arguments and prints
"""
