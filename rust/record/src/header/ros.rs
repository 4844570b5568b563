//! ROS message definitions: the type of the first field is all that a stamp's place takes.

const HEADERS: [&str; 3] = ["Header", "std_msgs/Header", "std_msgs/msg/Header"];
const TIMES: [&str; 3] = ["builtin_interfaces/Time", "builtin_interfaces/msg/Time", "time"];
const IDL_STAMPS: [&str; 2] = ["std_msgs::msg::Header", "builtin_interfaces::msg::Time"];

/// Whether a field type is a header, which begins with a stamp in ROS 2 and with a counter in ROS 1.
pub(super) fn is_header(field: &str) -> bool {
    HEADERS.contains(&field)
}

/// Whether a ROS 2 message whose first field is of this type begins with a stamp.
pub(super) fn leads_with_time(field: &str) -> bool {
    is_header(field) || TIMES.contains(&field)
}

/// Type of the first field of a `.msg` definition; constants and comments are skipped.
pub(super) fn first_field(schema: &[u8]) -> Option<String> {
    for raw in schema.split(|byte| *byte == b'\n' || *byte == b'\r') {
        let line = raw.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
        if line.starts_with(b"===") {
            return None;
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        if let (Some(first), Some(_)) = (words.next(), words.next())
            && !line.contains(&b'=')
        {
            return Some(String::from_utf8_lossy(first).into_owned());
        }
    }
    None
}

/// Whether the struct of an `.idl` definition begins with a stamp.
///
/// `schema` is several files, each after a line `IDL: <name>`; that of `name` (`sensor_msgs/msg/Imu`) counts.
pub(super) fn idl_leads_with_time(schema: &[u8], name: &str) -> bool {
    let Ok(text) = std::str::from_utf8(schema) else { return false };
    let mut sections = text.split("\nIDL: ").peekable();
    let wanted = loop {
        let Some(section) = sections.next() else { break None };
        let section = section.strip_prefix("IDL: ").unwrap_or(section);
        if section.lines().next().is_some_and(|line| line.trim() == name) {
            break section.split_once('\n').map(|(_, body)| body);
        }
    };
    let Some(body) = wanted else { return false };
    let last = name.rsplit('/').next().unwrap_or(name);
    first_member(Tokens(body), last).is_some_and(|first| IDL_STAMPS.contains(&first.trim_start_matches("::")))
}

/// Type of the first member of `struct name`, its annotations skipped.
fn first_member(mut tokens: Tokens<'_>, name: &str) -> Option<String> {
    loop {
        if tokens.next()? == "struct" && tokens.next()? == name && tokens.next()? == "{" {
            break;
        }
    }
    let mut path = String::new();
    loop {
        match tokens.next()? {
            "@" => tokens.annotation()?,
            "::" => path.push_str("::"),
            // A second word in a row is the member's name.
            word if !path.is_empty() && !path.ends_with("::") => {
                return word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some(path);
            }
            word => path.push_str(word),
        }
    }
}

/// Words, `::` and single signs of an IDL text, without comments, preprocessor lines and white space.
struct Tokens<'a>(&'a str);

impl<'a> Tokens<'a> {
    /// Skips the name of an annotation and its arguments.
    fn annotation(&mut self) -> Option<()> {
        self.next()?;
        let before = self.0;
        if self.next() != Some("(") {
            self.0 = before;
            return Some(());
        }
        let mut depth = 1u32;
        while depth > 0 {
            match self.next()? {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let (token, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            self.0 = self.0.trim_start();
            let text = self.0;
            let first = text.chars().next()?;
            if text.starts_with("//") || first == '#' {
                self.0 = text.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = text.strip_prefix("/*") {
                self.0 = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else if first == '"' {
                // A text may hold an escaped quote.
                let mut escaped = false;
                let end = text.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    closes
                });
                return self.take(end.map_or(text.len(), |(at, _)| at + 1));
            } else if text.starts_with("::") {
                return self.take(2);
            } else if first.is_alphanumeric() || first == '_' {
                let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
                return self.take(end);
            } else {
                return self.take(first.len_utf8());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMU: &str = "================================================================================\nIDL: geometry_msgs/msg/Quaternion\nmodule geometry_msgs { module msg { struct Quaternion { double x; }; }; };\n================================================================================\nIDL: sensor_msgs/msg/Imu\n// struct Imu { double no;\n#include \"std_msgs/msg/Header.idl\"\nmodule sensor_msgs {\n  module msg {\n    typedef double double__9[9];\n    @verbatim (language=\"comment\", text=\"struct Imu { int (x); \\\" }\")\n    struct Imu {\n      /* when */ @verbatim (language=\"comment\", text=\"the stamp (of it)\") @key\n      std_msgs::msg::Header header;\n      double x;\n    };\n  };\n};\n";

    #[test]
    fn the_struct_of_the_named_file_counts() {
        assert!(idl_leads_with_time(IMU.as_bytes(), "sensor_msgs/msg/Imu"));
        assert!(!idl_leads_with_time(IMU.as_bytes(), "geometry_msgs/msg/Quaternion"));
        assert!(!idl_leads_with_time(IMU.as_bytes(), "sensor_msgs/msg/Image"));
        assert!(!idl_leads_with_time(b"\xff", "a/msg/B"));
    }

    #[test]
    fn a_definition_that_breaks_off_anywhere_is_no_panic() {
        for end in 0..IMU.len() {
            idl_leads_with_time(&IMU.as_bytes()[..end], "sensor_msgs/msg/Imu");
        }
        let time = "IDL: a/msg/B\nmodule a { module msg { struct B { ::builtin_interfaces::msg::Time stamp; }; }; };";
        assert!(idl_leads_with_time(time.as_bytes(), "a/msg/B"));
    }
}
