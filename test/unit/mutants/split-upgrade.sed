# src/core/bptree/bpt_split.c: the leaf is locked whatever its version is
s/!euno_lock_upgrade(&leaf->lock, place->version)/!euno_lock_acquire(\&leaf->lock, cx->env, NULL)/
