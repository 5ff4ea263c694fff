{-# LANGUAGE GADTs #-}
{- function :: NotCode -}
module Example.Mail
  ( Outcome (..)
  , retry
  ) where

import qualified Data.Map as Map
import Data.List (foldl')

-- | The outcome of a letter.
data Outcome
  = Sent { outcomeId :: Int, to :: String }
  | Lost
  | Failed String !Int
  deriving (Show, Eq)

newtype Queue a = Queue { letters :: [a] }

type Handler m a = a -> m Outcome

type family Element c where
  Element [a] = a

data Term a where
  Number :: Int -> Term Int
  Pair :: Term a -> Term b -> Term (a, b)

class (Monad m) => Sender m where
  send :: String -> m Outcome
  flush, reset :: m ()
  flush = pure ()
  retries
    :: Int
    -> m Int

instance Sender IO where
  send letter = do
    putStrLn letter
    pure Lost
  flush = pure ()

maxTries, minTries :: Int
maxTries = 3
minTries = 1

retry :: Sender m
      => Int
      -> m Outcome
retry 0 = pure Lost
retry n
  | n > maxTries = pure Lost
  | otherwise = go n
  where
    go k = send (show k)
    helper' = 'x'

infixr 5 +++
(+++) :: [a] -> [a] -> [a]
xs +++ ys = xs ++ ys

x `plus` y = x + y

describe' :: Outcome -> String
describe' outcome = case outcome of
  Sent i _ -> "sent = \"" ++ show i
  _ -> "-- no comment"

makeLenses ''Queue

main :: IO ()
main = do
  let total = foldl' (+) 0 [1, 2]
  print total
