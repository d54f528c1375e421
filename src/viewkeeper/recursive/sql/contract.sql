-- From EDGE (A, B), in both directions, to the ROOT of each label: one for all that are connected.

-- REPEAT UNTIL EMPTY(EDGE): contract what is connected

-- STEP HOOK: each to its smallest neighbour, if that is smaller
SELECT e.A AS Label, LEAST(e.A, MIN(e.B)) AS Root FROM EDGE AS e GROUP BY e.A;
-- STEP JUMP
SELECT h.Label, p.Root FROM HOOK AS h JOIN HOOK AS p ON p.Label = h.Root WHERE p.Root <> h.Root;
-- REPEAT UNTIL EMPTY(JUMP): and to the end of that chain, doubling the steps
-- STEP HOOK
SELECT h.Label, COALESCE(j.Root, h.Root) AS Root FROM HOOK AS h LEFT JOIN JUMP AS j ON j.Label = h.Label;
-- STEP JUMP
SELECT h.Label, p.Root FROM HOOK AS h JOIN HOOK AS p ON p.Label = h.Root WHERE p.Root <> h.Root;
-- END

-- STEP EDGE
SELECT DISTINCT x.Root AS A, y.Root AS B FROM EDGE AS e
JOIN HOOK AS x ON x.Label = e.A JOIN HOOK AS y ON y.Label = e.B WHERE x.Root <> y.Root;
-- STEP ROOT
SELECT r.Label, COALESCE(h.Root, r.Root) AS Root FROM ROOT AS r LEFT JOIN HOOK AS h ON h.Label = r.Root;

-- END
