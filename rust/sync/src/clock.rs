//! The clock map: one device clock to rig time, causally (sync.md section 1).
//!
//! Every reading is unwrapped, taken into the lower envelope of arrivals and mapped onto the line below them, less the
//! calibrated minimum delay. A mapped time depends only on readings up to and including its own, so that running the
//! map over the evidence gives the recorded times again.
//!
//! What holds of mapped times:
//! - With an arrival, `rig_ns <= arrival_ns - min_delay_ns`: the line lies at or below every pair it was made of.
//! - A counter says when its tick began, so the truth is up to a tick later: the uncertainty has one tick less a
//!   nanosecond in it, and what a reading is late by within it is no delay and no step.
//! - Within a segment, readings with rising device times map to rising times as far as the line stands; when it is
//!   made anew it may fall (a quicker pair came) or rise (the window left a pair behind). Each change lies within the
//!   uncertainty stated for the reading before, as far as that uncertainty is honest.
//! - A step of the device clock begins a new segment and changes nothing before it. A step forward would put a reading
//!   after its own arrival, which cannot be, so it splits at once. A step back looks like a delay: it is believed at
//!   once where no delay is as long, else after readings in a row that agree on it for longer than anything is delayed:
//!   the new segment then begins with them, and until then the uncertainty covers the step.

use crate::envelope::{DELAY_MAX_NS, Envelope, ppb};
use crate::error::SyncError;
use crate::order::ABSENT;
use crate::unwrap::{Counter, Unwrapper};

/// The uncertainty of a time that nothing is known of: the largest that `measure` takes, and two of them add up.
pub const UNBOUNDED_NS: i64 = 1 << 60;

/// Pairs that a settled map rests on, in device time since the last split.
const SETTLED_SPAN_NS: i128 = 2_000_000_000;
/// Uncertainty within which a map is settled.
const SETTLED_WITHIN_NS: i64 = 500_000;
/// The least step forward that is not taken for a quick pair, whatever the uncertainty.
const FORWARD_STEP_NS: i64 = 300_000;
/// The least step back that is looked for; below it, the window follows.
const BACK_STEP_NS: i128 = 500_000;
/// Readings agree on a step back within half of it, and within this.
const BACK_STEP_AGREES_NS: i128 = 5_000_000;
/// A step back is believed when readings in a row agree on it, without one of ordinary delay between them, for so long
/// that chance does not do it: each is as rare as pairs of its height are, and all together are one in `2^40`.
const BACK_STEP_BITS: u32 = 40;
/// From here on the uncertainty covers it.
const BACK_STEP_SUSPECT_BITS: u32 = 30;
/// What comes late in a row may have waited for one thing, so it must go on for longer than such things last.
const BACK_STEP_OVER_NS: i128 = 4_000_000_000;
/// No ordinary thing holds a rig's transport up by this much for long: such a step is believed sooner, if hardly any
/// reading of the window (one in 2^7) came that late.
const GREAT_STEP_NS: i128 = 20_000_000;
const GREAT_STEP_OVER_NS: i128 = 1_000_000_000;
const GREAT_STEP_BITS: u32 = 7;
/// Readings that must agree in any case, and those from which on the uncertainty covers a great step.
const STEP_READINGS: u32 = 8;
const STEP_SUSPECT_READINGS: u32 = 3;
/// Pairs as high as a step are everyday where one in four is: two streams of one device may differ in delay.
const USUAL_BITS: u32 = 2;

/// How a device clock is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockConfig {
    /// How the device counts.
    pub counter: Counter,
    /// Calibrated minimum transport delay of the device's mode.
    pub min_delay_ns: i64,
    /// Half-width of what is known of it; part of every uncertainty.
    pub min_delay_bound_ns: i64,
    /// How far back pairs count, in device time, 1 ms to 1 h.
    pub window_ns: i64,
    /// Stamps are rig time already: nothing is fitted.
    pub identity: bool,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self {
            counter: Counter::default(),
            min_delay_ns: 0,
            min_delay_bound_ns: 0,
            window_ns: 10_000_000_000,
            identity: false,
        }
    }
}

/// One reading, mapped. Times that are not known or beyond int64 are `ABSENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// Unwrapped device time.
    pub device_ns: i64,
    /// Rig time of the device's stamp.
    pub rig_ns: i64,
    /// What `rig_ns` may be off by, either way.
    pub uncertainty_ns: i64,
    /// The device clock stepped before this reading: a new segment begins with it.
    pub split: bool,
}

impl Mapped {
    const ABSENT: Self = Self { device_ns: ABSENT, rig_ns: ABSENT, uncertainty_ns: ABSENT, split: false };
}

/// Consecutive late readings that may be a step back of the device clock.
#[derive(Debug, Clone)]
struct Suspicion {
    /// Their own segment, if it is one.
    segment: Envelope,
    since_ns: i64,
    /// Of the last reading that agreed: what arrives together was late together and is one piece of evidence.
    arrival_ns: i64,
    height: i128,
    agreeing: u32,
    /// Readings in a row that were later still.
    above: u32,
    /// How rare readings of this height were before, see `Envelope::rarity`.
    bits: u32,
    /// A reading less late than this is an ordinary one.
    least: i128,
}

/// One part in so many of a time that has passed. A division of 128 bits takes longer than all else that a reading does.
fn one_in(parts: u32, passed_ns: i128) -> i128 {
    u64::try_from(passed_ns).map_or_else(|_| passed_ns / i128::from(parts), |ns| (ns / u64::from(parts)).into())
}

fn agrees_within(height: i128) -> i128 {
    (height / 2).min(BACK_STEP_AGREES_NS)
}

impl Suspicion {
    fn is_great(&self) -> bool {
        self.height >= GREAT_STEP_NS && self.bits >= GREAT_STEP_BITS
    }

    /// What the uncertainty must cover on account of it.
    fn covered_ns(&self) -> i64 {
        let great = self.is_great() && self.agreeing >= STEP_SUSPECT_READINGS;
        let suspect = great || self.agreeing.saturating_mul(self.bits) >= BACK_STEP_SUSPECT_BITS;
        if suspect { i64::try_from(self.height).unwrap_or(UNBOUNDED_NS) } else { 0 }
    }

    /// Whether it is a step, after so much device time and in a window of this length.
    fn is_sure(&self, lasting_ns: i128, window_ns: i128) -> bool {
        // The window must not have left the pairs before the step behind, or it would bend.
        let (over_ns, bits) =
            if self.is_great() { (GREAT_STEP_OVER_NS, 0) } else { (BACK_STEP_OVER_NS, BACK_STEP_BITS) };
        self.agreeing >= STEP_READINGS
            && self.agreeing.saturating_mul(self.bits) >= bits
            && lasting_ns >= over_ns.min(window_ns * 2 / 5)
    }
}

/// The map of one device clock. A restarted device gets a new one.
#[derive(Debug, Clone)]
pub struct ClockMap {
    config: ClockConfig,
    /// What a reading may be later than its tick began.
    within_tick_ns: i64,
    unwrapper: Unwrapper,
    envelope: Option<Envelope>,
    suspicion: Option<Suspicion>,
    splits: u64,
    future: u64,
}

impl ClockMap {
    /// A map that knows nothing yet.
    ///
    /// # Errors
    ///
    /// `OutOfRange`: a counter, delay or window that no device can have.
    pub fn new(config: ClockConfig) -> Result<Self, SyncError> {
        let refuse = |what: &str, value: i64, allowed| {
            Err(SyncError::OutOfRange { what: format!("a clock map's {what}"), value: value.into(), allowed })
        };
        if config.min_delay_ns.unsigned_abs() > 3_600_000_000_000 {
            return refuse("min_delay_ns", config.min_delay_ns, "within 1 h");
        }
        if !(0..=3_600_000_000_000).contains(&config.min_delay_bound_ns) {
            return refuse("min_delay_bound_ns", config.min_delay_bound_ns, "from 0 to 1 h");
        }
        if !(1_000_000..=3_600_000_000_000).contains(&config.window_ns) {
            return refuse("window_ns", config.window_ns, "from 1 ms to 1 h");
        }
        let unwrapper = Unwrapper::new(config.counter)?;
        let within_tick_ns = config.counter.within_tick_ns();
        Ok(Self { config, within_tick_ns, unwrapper, envelope: None, suspicion: None, splits: 0, future: 0 })
    }

    /// Maps one reading, in order of receipt. Without an arrival it is mapped with what is known and teaches nothing;
    /// where nothing is known, that is the device time itself with an unbounded uncertainty.
    pub fn push(&mut self, ticks: i64, arrival_ns: Option<i64>) -> Mapped {
        if ticks == ABSENT {
            return Mapped::ABSENT;
        }
        let Some(device_ns) = self.unwrapper.push(ticks, arrival_ns) else { return Mapped::ABSENT };
        let split = match arrival_ns {
            Some(arrival_ns) if !self.config.identity => self.learn(device_ns, arrival_ns),
            _ => false,
        };
        let (rig_ns, uncertainty_ns) = self.map(device_ns);
        if let Some(arrival_ns) = arrival_ns.filter(|_| rig_ns != ABSENT) {
            let after = i128::from(rig_ns) - i128::from(arrival_ns);
            self.future += u64::from(after > uncertainty_ns.into());
        }
        Mapped { device_ns, rig_ns, uncertainty_ns, split }
    }

    /// At least 2 s of pairs since the last split, and the uncertainty within 500 us. A map that fits nothing is
    /// settled if its bound is.
    #[must_use]
    pub fn settled(&self) -> bool {
        if self.config.identity {
            return self.stated_ns() <= SETTLED_WITHIN_NS;
        }
        self.envelope.as_ref().is_some_and(|envelope| {
            envelope.span_ns() >= SETTLED_SPAN_NS && self.uncertainty_ns(envelope) <= SETTLED_WITHIN_NS
        })
    }

    /// How often the device clock stepped.
    #[must_use]
    pub fn splits(&self) -> u64 {
        self.splits
    }

    /// How often the counter went round.
    #[must_use]
    pub fn wraps(&self) -> u64 {
        self.unwrapper.wraps()
    }

    /// How much faster rig time runs than the device counts, in 10^-9, at most 500 000 either way; 0 of nothing.
    #[must_use]
    pub fn rate_ppb(&self) -> i64 {
        self.envelope.as_ref().map_or(0, |envelope| ppb(envelope.rate()))
    }

    /// The same in 2^-40.
    pub(crate) fn rate(&self) -> i128 {
        self.envelope.as_ref().map_or(0, Envelope::rate)
    }

    /// Readings mapped later than their own arrival by more than their uncertainty (`stamp.future`). A fitted map makes
    /// none, because its line lies below every arrival; these are stamps that were taken for rig time and are not.
    #[must_use]
    pub fn future(&self) -> u64 {
        self.future
    }

    /// Takes a pair in; true if it begins a new segment because the device clock stepped.
    fn learn(&mut self, device_ns: i64, arrival_ns: i64) -> bool {
        let window_ns = self.config.window_ns;
        let Some(envelope) = &self.envelope else {
            self.envelope = Some(Envelope::new(window_ns, device_ns, arrival_ns, 0));
            return false;
        };
        let height = i128::from(arrival_ns) - envelope.at(device_ns);
        let ahead = envelope.ahead(device_ns).max(0);
        let begins = if self.stepped(envelope, height, ahead) {
            Some(Envelope::new(window_ns, device_ns, arrival_ns, envelope.rate()))
        } else {
            self.stepped_back(device_ns, arrival_ns, height)
        };
        let stepped = begins.is_some();
        if let Some(segment) = begins {
            (self.envelope, self.suspicion) = (Some(segment), None);
        } else if let Some(envelope) = &mut self.envelope {
            if ahead > window_ns.into() {
                // After a silence longer than the window its pairs say nothing any more, but no clock has stepped.
                *envelope = Envelope::new(window_ns, device_ns, arrival_ns, envelope.rate());
                self.suspicion = None;
            } else {
                envelope.learn(device_ns, arrival_ns);
            }
        }
        self.splits += u64::from(stepped);
        stepped
    }

    /// A step that one reading proves: arrived before it can have been taken, or later than anything is delayed.
    fn stepped(&self, envelope: &Envelope, height: i128, ahead: i128) -> bool {
        // The rate may be off by 500 ppm at worst, over the time since the newest pair.
        let drift = one_in(2000, ahead);
        let early = envelope.uncertainty_ns().max(FORWARD_STEP_NS);
        height < -(i128::from(early) + i128::from(self.within_tick_ns) + drift)
            || height > i128::from(DELAY_MAX_NS) + drift
    }

    /// A step back that looks like a delay, once enough readings in a row agree on it: the segment that they make.
    fn stepped_back(&mut self, device_ns: i64, arrival_ns: i64, height: i128) -> Option<Envelope> {
        let envelope = self.envelope.as_ref()?;
        let unsure = || i128::from(envelope.uncertainty_ns()) + i128::from(self.within_tick_ns);
        let least = || BACK_STEP_NS.max(2 * unsure());
        // Once a step is suspected, the spread that it makes itself must not excuse it.
        let least = self.suspicion.as_ref().map_or_else(least, |suspicion| suspicion.least);
        if height < least {
            self.suspicion = None;
            return None;
        }
        let window_ns = self.config.window_ns;
        let suspect = |bits| Suspicion {
            // A clock that was set runs on at the rate it had.
            segment: Envelope::new(window_ns, device_ns, arrival_ns, envelope.rate()),
            since_ns: device_ns,
            arrival_ns,
            height,
            agreeing: 1,
            above: 0,
            bits,
            least,
        };
        let Some(suspicion) = &mut self.suspicion else {
            let bits = envelope.rarity(height - agrees_within(height));
            self.suspicion = (bits >= USUAL_BITS).then(|| suspect(bits));
            return None;
        };
        let within = agrees_within(suspicion.height);
        suspicion.above = if height > suspicion.height + within { suspicion.above + 1 } else { 0 };
        if height < suspicion.height - within || suspicion.above >= STEP_READINGS {
            // A queue that drains, every reading less late than the one before; or the first was late and no step.
            *suspicion = suspect(suspicion.bits.min(envelope.rarity(height - agrees_within(height))));
            return None;
        }
        suspicion.segment.learn(device_ns, arrival_ns);
        if suspicion.above == 0 {
            suspicion.height = suspicion.height.min(height);
            suspicion.agreeing += u32::from(arrival_ns > suspicion.arrival_ns);
            suspicion.arrival_ns = suspicion.arrival_ns.max(arrival_ns);
        }
        let lasting_ns = i128::from(device_ns) - i128::from(suspicion.since_ns);
        self.suspicion.take_if(|suspicion| suspicion.is_sure(lasting_ns, window_ns.into())).map(|s| s.segment)
    }

    fn map(&self, device_ns: i64) -> (i64, i64) {
        if self.config.identity {
            return (device_ns, self.stated_ns().min(UNBOUNDED_NS));
        }
        let Some(envelope) = &self.envelope else { return (device_ns, UNBOUNDED_NS) };
        let rig_ns = envelope.at(device_ns) - i128::from(self.config.min_delay_ns);
        let Some(rig_ns) = i64::try_from(rig_ns).ok().filter(|&ns| ns != ABSENT) else { return (ABSENT, ABSENT) };
        // 50 ppm of the time since the newest pair, for readings without an arrival.
        let ahead = i64::try_from(one_in(20_000, envelope.ahead(device_ns).max(0))).unwrap_or(UNBOUNDED_NS);
        (rig_ns, self.uncertainty_ns(envelope).saturating_add(ahead).min(UNBOUNDED_NS))
    }

    /// What no pair can tell: the bound of the minimum delay, and a tick.
    fn stated_ns(&self) -> i64 {
        self.config.min_delay_bound_ns.saturating_add(self.within_tick_ns)
    }

    /// What is stated, what the line may be off by, and a step back as long as it is suspected.
    fn uncertainty_ns(&self, envelope: &Envelope) -> i64 {
        let step = self.suspicion.as_ref().map_or(0, Suspicion::covered_ns);
        envelope.uncertainty_ns().saturating_add(self.stated_ns()).saturating_add(step)
    }
}

/// A whole clock, mapped at once: column by column what `ClockMap::push` says, reading by reading.
#[derive(Debug, Clone)]
pub struct MappedClock {
    /// As [`Mapped::device_ns`].
    pub device_ns: Vec<i64>,
    /// As [`Mapped::rig_ns`].
    pub rig_ns: Vec<i64>,
    /// As [`Mapped::uncertainty_ns`].
    pub uncertainty_ns: Vec<i64>,
    /// Numbers of the readings that begin a segment.
    pub splits: Vec<i64>,
    /// The map after the last reading.
    pub map: ClockMap,
}

/// Maps readings in order of receipt: the same `ClockMap`, so equal to it by construction. `ABSENT` arrivals are absent.
///
/// # Errors
///
/// As `ClockMap::new`; `ColumnLength` where there is not one arrival a reading.
pub fn map_clock(ticks: &[i64], arrival_ns: &[i64], config: ClockConfig) -> Result<MappedClock, SyncError> {
    if ticks.len() != arrival_ns.len() {
        return Err(SyncError::ColumnLength {
            name: "clock".to_owned(),
            column: "arrivals",
            entries: arrival_ns.len(),
            samples: ticks.len(),
        });
    }
    let column = || Vec::with_capacity(ticks.len());
    let (mut device_ns, mut rig_ns, mut uncertainty_ns, mut splits) = (column(), column(), column(), Vec::new());
    let mut map = ClockMap::new(config)?;
    for ((&ticks, &arrival), at) in ticks.iter().zip(arrival_ns).zip(0..) {
        let mapped = map.push(ticks, Some(arrival).filter(|&a| a != ABSENT));
        device_ns.push(mapped.device_ns);
        rig_ns.push(mapped.rig_ns);
        uncertainty_ns.push(mapped.uncertainty_ns);
        if mapped.split {
            splits.push(at);
        }
    }
    Ok(MappedClock { device_ns, rig_ns, uncertainty_ns, splits, map })
}
