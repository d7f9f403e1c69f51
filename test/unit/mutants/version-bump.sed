# src/core/euno_lock.h: a write leaves the version as it was
/^euno_lock_release(/,/^}/s/EUNO_LOCK_VERSION/0/
