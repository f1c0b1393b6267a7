//! The waist: who may do what, within which limits; every door enters here.
