-- SYSTEM even: whether a set has an even number of rows (section 6)
-- INPUT R (Row NODE): the rows before the update, without duplicates
-- TABLE EVEN (One INT): {1} if their number is even, else {}

-- OUTPUT even
SELECT e.One FROM EVEN AS e;

-- ON INSERT (t NODE): evenⁿ(1) iff (Rᵒ(t) ∧ evenᵒ(1)) ∨ (¬Rᵒ(t) ∧ ¬evenᵒ(1))

-- STEP EVEN_NEW
SELECT 1 AS One
WHERE (EXISTS (SELECT 1 FROM R AS r WHERE r.Row = :t) AND EXISTS (SELECT 1 FROM EVEN AS e))
   OR (NOT EXISTS (SELECT 1 FROM R AS r WHERE r.Row = :t) AND NOT EXISTS (SELECT 1 FROM EVEN AS e));

-- DELETE FROM EVEN
SELECT e.One FROM EVEN AS e WHERE NOT EXISTS (SELECT 1 FROM EVEN_NEW AS n);

-- INSERT INTO EVEN
SELECT n.One FROM EVEN_NEW AS n WHERE NOT EXISTS (SELECT 1 FROM EVEN AS e);

-- ON DELETE (t NODE): evenⁿ(1) iff (Rᵒ(t) ∧ ¬evenᵒ(1)) ∨ (¬Rᵒ(t) ∧ evenᵒ(1))

-- STEP EVEN_NEW
SELECT 1 AS One
WHERE (EXISTS (SELECT 1 FROM R AS r WHERE r.Row = :t) AND NOT EXISTS (SELECT 1 FROM EVEN AS e))
   OR (NOT EXISTS (SELECT 1 FROM R AS r WHERE r.Row = :t) AND EXISTS (SELECT 1 FROM EVEN AS e));

-- DELETE FROM EVEN
SELECT e.One FROM EVEN AS e WHERE NOT EXISTS (SELECT 1 FROM EVEN_NEW AS n);

-- INSERT INTO EVEN
SELECT n.One FROM EVEN_NEW AS n WHERE NOT EXISTS (SELECT 1 FROM EVEN AS e);

-- ON BUILD: from the rows themselves
-- INSERT INTO EVEN
SELECT 1 AS One FROM (SELECT COUNT(*) AS N FROM R) AS c WHERE c.N % 2 = 0;
