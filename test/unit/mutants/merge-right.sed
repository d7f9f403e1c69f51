# src/core/bptree/bpt_merge.c: the right leaf is merged whatever its version is
s/!euno_lock_upgrade(&m->right->lock, m->right_place.version)/!euno_lock_acquire(\&m->right->lock, env, NULL)/
