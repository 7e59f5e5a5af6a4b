//! The forms results are shown in: text, and pictures.

