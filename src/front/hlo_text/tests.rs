//! Forms that the corpus lacks.
