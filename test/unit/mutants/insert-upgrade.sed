# src/core/bptree/bpt_insert.c: the leaf is locked whatever its version is
s/!euno_lock_upgrade(&place.leaf->lock, place.version)/!euno_lock_acquire(\&place.leaf->lock, cx->env, NULL)/
