-- The closure from nothing: pairs by their shortest path, one edge longer in each round; if paths
-- are long, twice as long in each round.

-- VIEW G
SELECT e.Start, e.End FROM EDGES AS e WHERE e.Start IS NOT NULL AND e.End IS NOT NULL;

-- STEP FOUND: pairs found in the last round
SELECT DISTINCT g.Start, g.End, 1 AS Round FROM G AS g;

-- STEP ALL_PAIRS: all of them, with the number of edges, for those found by one edge more
SELECT f.Start, f.End, f.Round FROM FOUND AS f;

-- REPEAT UNTIL EMPTY(FOUND)
-- STEP FOUND: one edge more
SELECT DISTINCT f.Start, g.End, f.Round + 1 AS Round FROM FOUND AS f JOIN G AS g ON g.Start = f.End
WHERE f.Round < :far
  AND NOT EXISTS (SELECT 1 FROM ALL_PAIRS AS a WHERE a.Start = f.Start AND a.End = g.End);
-- STEP ALL_PAIRS
SELECT a.Start, a.End, a.Round FROM ALL_PAIRS AS a
UNION ALL
SELECT f.Start, f.End, f.Round FROM FOUND AS f;
-- END

-- STEP FAR: pairs as far from each other as we have come
SELECT a.Start, a.End, a.Round FROM ALL_PAIRS AS a WHERE a.Round = :far;

-- IF NOT EMPTY(FAR)

-- STEP BROAD: whether a node reaches so many others that joining paths with edges is cheaper
SELECT a.N FROM (SELECT COUNT(*) AS N FROM ALL_PAIRS) AS a CROSS JOIN (SELECT COUNT(*) AS N FROM G) AS g
WHERE a.N > 8 * :far * g.N;

-- STEP FOUND: then on as before
SELECT f.Start, f.End FROM FAR AS f WHERE EXISTS (SELECT 1 FROM BROAD AS b);

-- REPEAT UNTIL EMPTY(FOUND)
-- STEP FOUND: one edge more
SELECT DISTINCT f.Start, g.End FROM FOUND AS f JOIN G AS g ON g.Start = f.End
WHERE NOT EXISTS (SELECT 1 FROM ALL_PAIRS AS a WHERE a.Start = f.Start AND a.End = g.End);
-- STEP ALL_PAIRS
SELECT a.Start, a.End, a.Round FROM ALL_PAIRS AS a
UNION ALL
SELECT f.Start, f.End, 0 AS Round FROM FOUND AS f;
-- END

-- STEP FAR: else a shortest path goes on from its first part, which is as long as any so far
SELECT f.Start, f.End, f.Round FROM FAR AS f WHERE NOT EXISTS (SELECT 1 FROM BROAD AS b);

-- REPEAT UNTIL EMPTY(FAR)
-- STEP NEAR: by less than that
SELECT DISTINCT f.Start, a.End, f.Round + 1 AS Round FROM FAR AS f
JOIN ALL_PAIRS AS a ON a.Start = f.End AND a.Round < f.Round
WHERE NOT EXISTS (SELECT 1 FROM ALL_PAIRS AS k WHERE k.Start = f.Start AND k.End = a.End);
-- STEP ALL_PAIRS
SELECT a.Start, a.End, a.Round FROM ALL_PAIRS AS a
UNION ALL
SELECT n.Start, n.End, n.Round FROM NEAR AS n;
-- STEP FAR: by as much
SELECT DISTINCT f.Start, g.End, 2 * f.Round AS Round FROM FAR AS f JOIN FAR AS g ON g.Start = f.End
WHERE NOT EXISTS (SELECT 1 FROM ALL_PAIRS AS a WHERE a.Start = f.Start AND a.End = g.End);
-- STEP ALL_PAIRS
SELECT a.Start, a.End, a.Round FROM ALL_PAIRS AS a
UNION ALL
SELECT f.Start, f.End, f.Round FROM FAR AS f;
-- END
-- END
