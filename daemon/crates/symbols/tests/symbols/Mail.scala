package org.example.mail

import scala.collection.mutable

sealed trait Outcome
case object Lost extends Outcome
final case class Sent(id: Long, to: String = "x") extends Outcome

/* def notCode = 1 */
abstract class Mailer[T <: AnyRef](sender: Sender)
    extends AutoCloseable
    with Ordered[T] {
  type Letter = String
  val limit = 10
  private var sent: Int = 0
  lazy val all = {
    val inner = 1
    inner + 1
  }

  def this() = this(null)

  def open(): Boolean
  def size: Int = sent

  override def close(): Unit = {
    def helper(n: Int): Int = n + 1
    println(s"closed ${helper(1)} }")
  }

  def retry[R](times: Int)(block: => R): R =
    times match {
      case 0 => block
      case n if n > 1 =>
        retry(n - 1)(block)
    }

  def +(other: Mailer[T]): Mailer[T] = this
}

object Mailer {
  val Default = 'x'
  implicit class Rich(val text: String) extends AnyVal {
    def shout: String = text.toUpperCase
  }

  def apply(name: String): Mailer[String] = new Mailer[String](null) {
    def open() = true
  }
}

enum Color(val rgb: Int):
  case Red extends Color(1)
  case Green extends Color(2)

  def darker: Color =
    this

trait Show[A]:
  def show(a: A): String
  extension (a: A)
    def display: String = show(a)

given intShow: Show[Int] with
  def show(a: Int): String =
    a.toString

object Tools:
  def first(x: Int): Int =
    val doubled = x * 2
    doubled

  private def second = """
def inString = 1
"""
end Tools

def topLevel(x: Int) =
  x + 1

class Last
