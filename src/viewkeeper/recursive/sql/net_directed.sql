-- From rows that came and went to edges that came and went.

-- STEP NET: the edges whose number of copies changed
SELECT c.Start, c.End, SUM(c.Weight) AS Weight FROM CHANGES AS c
WHERE c.Start IS NOT NULL AND c.End IS NOT NULL
GROUP BY c.Start, c.End
HAVING SUM(c.Weight) <> 0;

-- STEP COPIES: how many copies of them there are now
SELECT e.Start, e.End, COUNT(*) AS Copies
FROM EDGES AS e JOIN NET AS n ON n.Start = e.Start AND n.End = e.End
GROUP BY e.Start, e.End;

-- STEP INSERTED: edges of which there were no copies
SELECT n.Start, n.End FROM NET AS n JOIN COPIES AS c ON c.Start = n.Start AND c.End = n.End
WHERE c.Copies <= n.Weight;

-- STEP DELETED: edges of which there are none left
SELECT n.Start, n.End FROM NET AS n
WHERE n.Weight < 0
  AND NOT EXISTS (SELECT 1 FROM COPIES AS c WHERE c.Start = n.Start AND c.End = n.End);

-- VIEW KEPT: the edges that were there and still are, maybe in copies
SELECT e.Start, e.End FROM EDGES AS e
WHERE e.Start IS NOT NULL AND e.End IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM INSERTED AS i WHERE i.Start = e.Start AND i.End = e.End);
