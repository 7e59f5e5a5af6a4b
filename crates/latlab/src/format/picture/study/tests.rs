//! Pictures of studies show what was measured.
