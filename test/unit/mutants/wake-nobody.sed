# src/core/euno_lock.h: whoever sleeps on a lock is not woken
/^euno_lock_leave/,/^}/s/(old & EUNO_LOCK_WAITERS) != 0/0 \&\& old/
