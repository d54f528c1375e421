-- The closure from nothing, by semi-naive iteration.

-- VIEW G
SELECT e.Start, e.End FROM EDGES AS e WHERE e.Start IS NOT NULL AND e.End IS NOT NULL;

-- STEP FOUND: pairs found in the last round
SELECT DISTINCT g.Start, g.End FROM G AS g;

-- STEP ALL_PAIRS
SELECT f.Start, f.End FROM FOUND AS f;

-- REPEAT UNTIL EMPTY(FOUND)
-- STEP FOUND: one edge more
SELECT DISTINCT f.Start, g.End FROM FOUND AS f JOIN G AS g ON g.Start = f.End
WHERE NOT EXISTS (SELECT 1 FROM ALL_PAIRS AS a WHERE a.Start = f.Start AND a.End = g.End);
-- STEP ALL_PAIRS
SELECT a.Start, a.End FROM ALL_PAIRS AS a UNION ALL SELECT f.Start, f.End FROM FOUND AS f;
-- END
