//! Tests of reading configurations, and of the devices in each group.

use super::*;
use proptest::prelude::*;

fn refused(text: &str) -> String {
    Configuration::read(text).unwrap_err()
}

/// The default groups that an interrupt belongs to.
fn groups(action: &str, driver: Option<&str>) -> Vec<String> {
    let shipped = Configuration::read("").unwrap();
    let its = shipped.groups.iter().filter(|group| group.has(action, driver));
    its.map(|group| group.name.clone()).collect()
}

#[test]
fn default_configuration_is_valid_and_allows_only_root() {
    let shipped = Configuration::read("").unwrap();
    assert_eq!(shipped, Configuration::read(DEFAULT).unwrap());
    assert_eq!((shipped.ceiling, shipped.allow, shipped.metrics), (90, None, None));
    let names: Vec<&str> = shipped.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["AUDIO", "HID", "NETWORK", "SERIAL", "STORAGE", "TIMER", "VIDEO"]);
}

#[test]
fn default_groups_contain_interrupts_of_real_machines() {
    for (action, driver, group) in [
        ("eth0", Some("e1000"), "NETWORK"),
        ("enp3s0f1-TxRx-7", Some("ixgbe"), "NETWORK"),
        ("enp5s0-rx-0", Some("igc"), "NETWORK"),
        ("virtio0-input.0", Some("virtio-pci"), "NETWORK"),
        ("iwlwifi:default_queue", Some("iwlwifi"), "NETWORK"),
        ("ahci[0000:00:1f.2]", Some("ahci"), "STORAGE"),
        ("nvme0q3", Some("nvme"), "STORAGE"),
        ("virtio2-req.0", Some("virtio-pci"), "STORAGE"),
        ("snd_hda_intel:card1", Some("snd_hda_intel"), "AUDIO"),
        ("AudioDSP", Some("sof-audio-pci-intel-tgl"), "AUDIO"),
        ("i915", Some("i915"), "VIDEO"),
        ("i8042", Some("i8042"), "HID"),
        ("xhci_hcd", Some("xhci_hcd"), "HID"),
        ("hpet0", None, "TIMER"),
        ("rtc0", Some("rtc_cmos"), "TIMER"),
        ("timer", None, "TIMER"),
        ("ttyS0", Some("serial"), "SERIAL"),
    ] {
        assert_eq!(groups(action, driver), [group], "{action} {driver:?}");
    }
    assert_eq!(groups("acpi", None), [""; 0]);
    assert_eq!(groups("unknown", Some("e1000e")), ["NETWORK"], "the driver is enough");
}

#[test]
fn group_in_file_is_added_to_default_groups_or_replaces_one() {
    let own = "ceiling = 60\nallow = 'audio'\nmetrics = '[::1]:9464'\n\
               [groups.Audio]\nactions = ['mine?']\n[groups.lasers]\ndrivers = ['laser*']\n";
    let own = Configuration::read(own).unwrap();
    assert_eq!((own.ceiling, own.allow.as_deref()), (60, Some("audio")));
    assert!(own.metrics.unwrap().ip().is_loopback());
    assert_eq!(own.groups.len(), 8);
    let audio = own.group("audio").unwrap();
    assert!(audio.has("mine1", None) && !audio.has("snd_hda_intel:card0", None));
    assert!(own.group("LASERS").unwrap().has("17", Some("laser9")));
    assert!(own.group("network").unwrap().has("eth0", None));
}

#[test]
fn unknown_group_is_refused_with_list_of_groups() {
    let shipped = Configuration::read("").unwrap();
    let why = shipped.group("nework").unwrap_err();
    assert_eq!(why, "there is no device group 'nework': did you mean NETWORK?");
    let why = shipped.group("xyzzy").unwrap_err();
    assert!(why.contains("choose from AUDIO, HID, NETWORK, "), "{why}");
}

#[test]
fn invalid_setting_is_refused_with_its_line_and_valid_values() {
    let why = refused("ceiling = 50\ncelling = 3\n");
    assert!(why.starts_with("line 2: unknown field `celling`, expected one of `ceiling`"), "{why}");
    let why = refused("[groups.A]\nactions = ['x']\ndriver = ['y']\n");
    assert!(why.starts_with("line 3: unknown field `driver`, expected `actions` or"), "{why}");
    for wrong in ["0", "99", "-1", "4294967297"] {
        let why = refused(&format!("\nceiling = {wrong}"));
        assert_eq!(why, format!("line 2: ceiling is {wrong}: it is a priority, 1 to 98"));
    }
    let why = refused("metrics = '0.0.0.0:80'");
    assert!(why.contains("line 1: 0.0.0.0:80 can be reached by other machines"), "{why}");
    let why = refused("metrics = 'localhost'");
    assert!(why.contains("'localhost' is not an address with a port"), "{why}");
    let why = refused("allow = ''");
    assert!(why.contains("line 1: '' is not a Unix group"), "{why}");
    let why = refused("[groups.A]\nactions = ['[']\n");
    assert!(why.starts_with("line 2: '[' is not a pattern: "), "{why}");
    let why = refused("[groups.'a,b']\nactions = ['x']\n");
    assert!(why.starts_with("line 1: 'a,b' is not a valid group name"), "{why}");
    let why = refused("[groups.A]\n[groups.B]\n[groups.a]\n");
    assert_eq!(why, "line 3: A and a name the same group: join them");
    let why = refused("ceiling = 50\nallow\n");
    assert!(why.starts_with("line 2: "), "{why}");
}

proptest! {
    #[test]
    fn file_of_any_text_is_read_or_refused_with_a_line(text in "(?s).{0,200}") {
        if let Err(why) = Configuration::read(&text) {
            prop_assert!(why.starts_with("line "), "{}", why);
            prop_assert!(!why.contains('\n'), "{}", why);
        }
    }

    #[test]
    fn truncated_or_changed_default_is_read_or_refused(at in 0..DEFAULT.len(), byte in 32..127u8) {
        let mut text = DEFAULT.as_bytes().to_vec();
        text[at] = byte;
        let text = String::from_utf8(text).unwrap();
        if let Err(why) = Configuration::read(&text) {
            prop_assert!(why.starts_with("line "), "{}", why);
        }
        let _ = Configuration::read(&text[..at]);
    }

    #[test]
    fn group_is_found_by_name_in_any_case(upper in proptest::collection::vec(any::<bool>(), 7)) {
        let shipped = Configuration::read("").unwrap();
        for group in &shipped.groups {
            let mut name = group.name.to_lowercase();
            for (at, _) in upper.iter().enumerate().filter(|(at, up)| **up && *at < group.name.len()) {
                name.replace_range(at..=at, &group.name[at..=at]);
            }
            prop_assert_eq!(shipped.group(&name), Ok(group));
        }
    }

    #[test]
    fn group_has_exactly_the_interrupts_its_patterns_match(
        prefix in "[a-z]{1,6}",
        rest in "[ -~]{0,12}",
        other in "[ -~]{0,12}",
    ) {
        let own = Configuration::read(&format!("[groups.X]\nactions = ['{prefix}*']\n")).unwrap();
        let group = own.group("x").unwrap();
        let action = format!("{prefix}{rest}");
        prop_assert!(group.has(&action, None));
        prop_assert_eq!(group.has(&other, Some(&prefix)), other.starts_with(&prefix));
    }
}
