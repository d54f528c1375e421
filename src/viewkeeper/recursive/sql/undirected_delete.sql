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
SELECT p.Pair, 1 AS Side, p.Start AS Node, 0 AS Round FROM PAIR AS p
UNION ALL
SELECT p.Pair, 2 AS Side, p.End AS Node, 0 AS Round FROM PAIR AS p;

-- STEP REACHED: all of them
SELECT f.Pair, f.Side, f.Node, f.Round FROM FRONTIER AS f;

-- REPEAT UNTIL EMPTY(FRONTIER) AT MOST 60: the ends of deleted edges are far from each other

-- STEP TOUCH: their neighbours
SELECT DISTINCT f.Pair, f.Side, a.End AS Node, f.Round + 1 AS Round FROM FRONTIER AS f
JOIN ALONG AS a ON a.Start = f.Node
WHERE NOT EXISTS (
    SELECT 1 FROM REACHED AS r WHERE r.Pair = f.Pair AND r.Side = f.Side AND r.Node = a.End
  );

-- STEP REACHED
SELECT r.Pair, r.Side, r.Node, r.Round FROM REACHED AS r
UNION ALL
SELECT t.Pair, t.Side, t.Node, t.Round FROM TOUCH AS t;

-- STEP FRONTIER: go on if the sides have not met, and none of them has come to its end
SELECT t.Pair, t.Side, t.Node, t.Round FROM TOUCH AS t
JOIN (SELECT u.Pair FROM TOUCH AS u GROUP BY u.Pair HAVING MIN(u.Side) <> MAX(u.Side)) AS b
  ON b.Pair = t.Pair
WHERE NOT EXISTS (
    SELECT 1 FROM TOUCH AS x JOIN REACHED AS y
      ON y.Pair = x.Pair AND y.Node = x.Node AND y.Side <> x.Side
    WHERE x.Pair = t.Pair
  );

-- END

-- STEP FINISHED: sides that came to their end without meeting the other; they are all of their part
SELECT s.Pair, s.Side, s.Least
FROM (
    SELECT r.Pair, r.Side, MIN(r.Node) AS Least, MAX(r.Round) AS Round FROM REACHED AS r
    GROUP BY r.Pair, r.Side
  ) AS s
JOIN (
    SELECT q.Pair, MIN(q.Round) AS Round
    FROM (
        SELECT r.Pair, r.Side, MAX(r.Round) AS Round FROM REACHED AS r GROUP BY r.Pair, r.Side
      ) AS q
    GROUP BY q.Pair
  ) AS m ON m.Pair = s.Pair AND m.Round = s.Round
WHERE NOT EXISTS (
    SELECT 1 FROM REACHED AS x JOIN REACHED AS y
      ON y.Pair = x.Pair AND y.Node = x.Node AND y.Side <> x.Side
    WHERE x.Pair = s.Pair
  );

-- STEP ASKED
SELECT a.Start, a.End FROM ASKED AS a UNION SELECT p.Start, p.End FROM PAIR AS p;

-- STEP PAIR: none, if nothing is cut off
SELECT p.Start, p.End, p.Pair FROM PAIR AS p WHERE 1 = 0;

-- IF NOT EMPTY(FINISHED): what was connected through the parts cut off may fall apart, too

-- STEP PART
SELECT p.Node, p.Least FROM PART AS p
UNION
SELECT r.Node, f.Least FROM REACHED AS r JOIN FINISHED AS f ON f.Pair = r.Pair AND f.Side = r.Side;

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
