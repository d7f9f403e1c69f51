\set from random(1, 2000)
\set to random(1, 2000)
\set amount random(1, 100)
BEGIN;
UPDATE torture.account SET balance = balance - :amount WHERE id = :from;
UPDATE torture.account SET balance = balance + :amount, owner = owner || '' WHERE id = :to;
INSERT INTO torture.log (account, amount) VALUES (:from, -:amount), (:to, :amount);
INSERT INTO torture.recent VALUES (:from, now());
END;
SELECT sum(amount), count(*) FROM torture.log WHERE account = :to;
