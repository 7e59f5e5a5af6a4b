//! Two records side by side.
