// congee's operations for C: keys and values are 8 bytes, values below 2^63.

use congee::{Congee, DefaultAllocator};
use std::slice;

type Tree = Congee<usize, usize>;

#[no_mangle]
pub extern "C" fn congee_new() -> *mut Tree {
    Box::into_raw(Box::new(Tree::new(DefaultAllocator {})))
}

/// # Safety
/// The tree is one of congee_new, which nobody uses any more.
#[no_mangle]
pub unsafe extern "C" fn congee_free(tree: *mut Tree) {
    drop(Box::from_raw(tree));
}

/// Replaces what the key has.  False: no memory.
///
/// # Safety
/// As of all that follow: the tree is one of congee_new.
#[no_mangle]
pub unsafe extern "C" fn congee_insert(tree: *const Tree, key: u64, value: u64) -> bool {
    let guard = (*tree).pin();
    (*tree).insert(key as usize, value as usize, &guard).is_ok()
}

/// # Safety
/// "value" may be written.
#[no_mangle]
pub unsafe extern "C" fn congee_get(tree: *const Tree, key: u64, value: *mut u64) -> bool {
    let guard = (*tree).pin();
    let found = (*tree).get(&(key as usize), &guard);
    *value = found.unwrap_or(0) as u64;
    found.is_some()
}

/// Up to n pairs from a key on; how many.
///
/// # Safety
/// There is room for n pairs.
#[no_mangle]
pub unsafe extern "C" fn congee_range(tree: *const Tree, low: u64, pairs: *mut (usize, usize), n: u32) -> u32 {
    let guard = (*tree).pin();
    let pairs = slice::from_raw_parts_mut(pairs, n as usize);
    (*tree).range(&(low as usize), &usize::MAX, pairs, &guard) as u32
}
