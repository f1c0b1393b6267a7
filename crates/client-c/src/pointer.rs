//! Pointers of C, checked as far as they can be, turned into references and back.

use std::ffi::{CStr, c_char, c_void};

use crate::error::Failure;

/// A pointer that may not be NULL, to what is read.
///
/// # Safety
///
/// It is NULL, or points to a `T` that nobody changes for as long as the reference is used.
pub(crate) unsafe fn shared<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise is the one that `as_ref` asks for.
    unsafe { pointer.as_ref() }.ok_or_else(|| missing(what))
}

/// A pointer that may not be NULL, to what is written.
///
/// # Safety
///
/// It is NULL, or points to a `T` that nobody else uses for as long as the reference is used.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise is the one that `as_mut` asks for.
    unsafe { pointer.as_mut() }.ok_or_else(|| missing(what))
}

/// Bytes with their length; of length 0 whatever the pointer is.
///
/// # Safety
///
/// The pointer is NULL, or `length` bytes lie behind it that nobody changes for as long as the slice is used.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    length: usize,
    what: &str,
) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { array(pointer.cast::<u8>(), length, what) }
}

/// An array with its length; of length 0 whatever the pointer is.
///
/// # Safety
///
/// The pointer is NULL, or `length` elements lie behind it that nobody changes for as long as the slice is used.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, length: usize, what: &str) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    check_array(pointer, length, what)?;
    // SAFETY: neither NULL nor beyond what an object can be; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// As [`array`], to be written.
///
/// # Safety
///
/// The pointer is NULL, or `length` elements lie behind it that nobody else uses for as long as the slice is used.
pub(crate) unsafe fn array_mut<'a, T>(
    pointer: *mut T,
    length: usize,
    what: &str,
) -> Result<&'a mut [T], Failure> {
    if length == 0 {
        return Ok(&mut []);
    }
    check_array(pointer, length, what)?;
    // SAFETY: neither NULL nor beyond what an object can be; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) })
}

fn check_array<T>(pointer: *const T, length: usize, what: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(missing(what));
    }
    let largest = isize::MAX.unsigned_abs() / size_of::<T>().max(1);
    if length > largest {
        return Err(Failure::argument(format!("{what} cannot have the length {length}")));
    }
    Ok(())
}

/// A string that ends in 0, in UTF-8; none for NULL.
///
/// # Safety
///
/// The pointer is NULL, or to bytes that end in 0 and that nobody changes for as long as the text is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL; the rest is the caller's promise.
    let string = unsafe { CStr::from_ptr(pointer) };
    string.to_str().map(Some).map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// Gives an object to C.
pub(crate) fn give<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Takes an object back and frees it.
///
/// # Safety
///
/// The pointer is NULL, or came from [`give`], and nobody uses it any more.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it came out of a box, once; by the caller's promise this is the only time that it goes back.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// A place where an answer is stored.
///
/// # Safety
///
/// The pointer is NULL, or to memory for a `T` that nobody else uses; it need not hold one.
pub(crate) unsafe fn store<T>(pointer: *mut T, object: T) {
    if !pointer.is_null() {
        // SAFETY: memory for a `T`, by the caller's promise; what was there is not dropped.
        unsafe { pointer.write(object) };
    }
}

fn missing(what: &str) -> Failure {
    Failure::argument(format!("{what} is NULL"))
}
