-- From DELETED to SPLIT, the nodes that are cut off from the rest of their component, and VANISHED,
-- the nodes without edges. The two ends of each deleted edge search for each other.

-- IF NOT EMPTY(DELETED)

-- STEP LOOSE: the ends of deleted edges, with their component
SELECT c.Node, c.Comp FROM COMPONENT AS c
JOIN (SELECT d.Start AS Node FROM DELETED AS d UNION SELECT d.End AS Node FROM DELETED AS d) AS n
  ON n.Node = c.Node;

-- STEP VANISHED: those that no edge has any more
SELECT l.Node, l.Comp FROM LOOSE AS l
WHERE NOT EXISTS (
    SELECT 1
    FROM (
        SELECT DISTINCT b.Node
        FROM (
            SELECT e.Start AS Node FROM EDGES AS e WHERE e.End IS NOT NULL
            UNION ALL
            SELECT e.End AS Node FROM EDGES AS e WHERE e.Start IS NOT NULL
          ) AS b
        JOIN LOOSE AS a ON a.Node = b.Node
      ) AS h
    WHERE h.Node = l.Node
  );

-- VIEW KEPT: the edges that were there and still are, maybe in copies
SELECT e.Start, e.End FROM EDGES AS e
WHERE e.Start IS NOT NULL AND e.End IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM INSERTED AS i WHERE i.Start = e.Start AND i.End = e.End)
  AND NOT EXISTS (SELECT 1 FROM INSERTED AS i WHERE i.Start = e.End AND i.End = e.Start);

-- VIEW ALONG: in both directions
SELECT k.Start, k.End FROM KEPT AS k UNION ALL SELECT k.End AS Start, k.Start AS End FROM KEPT AS k;

-- STEP PAIR: two nodes that were connected; are they still?
SELECT d.Start, d.End, ROW_NUMBER() OVER (ORDER BY d.Start, d.End) AS Pair FROM DELETED AS d
WHERE d.Start <> d.End;

-- STEP ASKED: all pairs so far
SELECT p.Start, p.End FROM PAIR AS p WHERE 1 = 0;

-- STEP PART: nodes that are cut off, with the smallest node of their part
SELECT p.Start AS Node, p.End AS Least FROM PAIR AS p WHERE 1 = 0;

-- REPEAT UNTIL EMPTY(PAIR)

-- STEP FRONTIER: the nodes that each side came to last
SELECT p.Pair, 1 AS Side, p.Start AS Node FROM PAIR AS p
UNION ALL
SELECT p.Pair, 2 AS Side, p.End AS Node FROM PAIR AS p;

-- STEP REACHED: all of them
SELECT f.Pair, f.Side, f.Node FROM FRONTIER AS f;

-- REPEAT UNTIL EMPTY(FRONTIER) AT MOST 60: the ends of deleted edges are far from each other

-- STEP AROUND: their neighbours
SELECT a.Start, a.End FROM ALONG AS a
JOIN (SELECT DISTINCT f.Node FROM FRONTIER AS f) AS n ON n.Node = a.Start;

-- STEP GOING: the sides that go on: those with few neighbours, and of two with many the one with less
SELECT q.Pair, q.Side
FROM (
    SELECT w.Pair, w.Side, w.Width,
        ROW_NUMBER() OVER (PARTITION BY w.Pair ORDER BY w.Width, w.Side) AS Place
    FROM (
        SELECT f.Pair, f.Side, SUM(COALESCE(c.Width, 0)) AS Width FROM FRONTIER AS f
        LEFT JOIN (SELECT a.Start AS Node, COUNT(*) AS Width FROM AROUND AS a GROUP BY a.Start) AS c
          ON c.Node = f.Node
        GROUP BY f.Pair, f.Side
      ) AS w
  ) AS q
WHERE q.Place = 1 OR q.Width <= :few;

-- STEP TOUCH: the neighbours that they had not come to; NULL if a side has come to its end
SELECT DISTINCT g.Pair, g.Side, n.Node FROM GOING AS g
LEFT JOIN (
    SELECT f.Pair, f.Side, a.End AS Node FROM FRONTIER AS f JOIN AROUND AS a ON a.Start = f.Node
    WHERE NOT EXISTS (
        SELECT 1 FROM REACHED AS r WHERE r.Pair = f.Pair AND r.Side = f.Side AND r.Node = a.End
      )
  ) AS n ON n.Pair = g.Pair AND n.Side = g.Side;

-- STEP REACHED
SELECT r.Pair, r.Side, r.Node FROM REACHED AS r
UNION ALL
SELECT t.Pair, t.Side, t.Node FROM TOUCH AS t;

-- STEP FRONTIER: if the sides have not met, and none of them has come to its end
SELECT q.Pair, q.Side, q.Node
FROM (
    SELECT t.Pair, t.Side, t.Node FROM TOUCH AS t
    UNION ALL
    SELECT f.Pair, f.Side, f.Node FROM FRONTIER AS f
    WHERE NOT EXISTS (SELECT 1 FROM GOING AS g WHERE g.Pair = f.Pair AND g.Side = f.Side)
  ) AS q
WHERE NOT EXISTS (SELECT 1 FROM TOUCH AS t WHERE t.Pair = q.Pair AND t.Node IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM TOUCH AS x JOIN REACHED AS y
      ON y.Pair = x.Pair AND y.Node = x.Node AND y.Side <> x.Side
    WHERE x.Pair = q.Pair
  );

-- END

-- STEP FINISHED: sides that came to their end without meeting the other; they are all of their part
SELECT r.Pair, r.Side, MIN(r.Node) AS Least FROM REACHED AS r
JOIN (SELECT e.Pair, e.Side FROM REACHED AS e WHERE e.Node IS NULL) AS s
  ON s.Pair = r.Pair AND s.Side = r.Side
WHERE r.Node IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM REACHED AS x JOIN REACHED AS y
      ON y.Pair = x.Pair AND y.Node = x.Node AND y.Side <> x.Side
    WHERE x.Pair = r.Pair
  )
GROUP BY r.Pair, r.Side;

-- STEP ASKED
SELECT a.Start, a.End FROM ASKED AS a UNION SELECT p.Start, p.End FROM PAIR AS p;

-- STEP PAIR: none, if nothing is cut off
SELECT p.Start, p.End, p.Pair FROM PAIR AS p WHERE 1 = 0;

-- IF NOT EMPTY(FINISHED): what was connected through the parts cut off may fall apart, too

-- STEP PART
SELECT p.Node, p.Least FROM PART AS p
UNION
SELECT r.Node, f.Least FROM REACHED AS r JOIN FINISHED AS f ON f.Pair = r.Pair AND f.Side = r.Side
WHERE r.Node IS NOT NULL;

-- STEP LINE: pairs asked for, with the parts that their ends are in
SELECT a.Start, a.End, h.Comp, p.Least AS LeastS, q.Least AS LeastE FROM ASKED AS a
JOIN LOOSE AS h ON h.Node = a.Start
LEFT JOIN PART AS p ON p.Node = a.Start
LEFT JOIN PART AS q ON q.Node = a.End;

-- STEP NEIGHBOUR: nodes not cut off that were connected through a part
SELECT n.Comp, n.Least, n.Node,
    ROW_NUMBER() OVER (
        PARTITION BY n.Comp, CASE WHEN t.Comp IS NULL THEN n.Least END ORDER BY n.Node
    ) AS Place,
    CASE WHEN t.Comp IS NULL THEN 0 ELSE 1 END AS Tangled
FROM (
    SELECT l.Comp, l.LeastE AS Least, l.Start AS Node FROM LINE AS l
    WHERE l.LeastS IS NULL AND l.LeastE IS NOT NULL
    UNION
    SELECT l.Comp, l.LeastS AS Least, l.End AS Node FROM LINE AS l
    WHERE l.LeastE IS NULL AND l.LeastS IS NOT NULL
  ) AS n
LEFT JOIN (SELECT DISTINCT l.Comp FROM LINE AS l WHERE l.LeastS <> l.LeastE) AS t ON t.Comp = n.Comp;

-- STEP PAIR: each of them and the next one
SELECT q.Start, q.End, ROW_NUMBER() OVER (ORDER BY q.Start, q.End) AS Pair
FROM (
    SELECT DISTINCT x.Node AS Start, y.Node AS End FROM NEIGHBOUR AS x
    JOIN NEIGHBOUR AS y
      ON y.Comp = x.Comp AND y.Place = x.Place + 1 AND (x.Tangled = 1 OR y.Least = x.Least)
    WHERE x.Node <> y.Node
  ) AS q
WHERE NOT EXISTS (SELECT 1 FROM ASKED AS a WHERE a.Start = q.Start AND a.End = q.End);

-- END
-- END

-- IF NOT EMPTY(PART)

-- STEP NUMBER: a number for each part
SELECT q.Least, t.Top + ROW_NUMBER() OVER (ORDER BY q.Least) AS Label
FROM (SELECT DISTINCT p.Least FROM PART AS p) AS q CROSS JOIN TOP AS t;

-- STEP SPLIT: the nodes cut off, with the number they had and the number of the part
SELECT c.Node, c.Comp AS Was, n.Label FROM COMPONENT AS c
JOIN PART AS p ON p.Node = c.Node
JOIN NUMBER AS n ON n.Least = p.Least;

-- END
-- END
