@file:JvmName("Mail")
package org.example.mail

import kotlin.time.Duration

const val MAX_TRIES = 3
val defaults by lazy { mapOf("a" to 1) }
var sent: Int = 0

typealias Handler<T> = suspend (T) -> Unit

/** fun notCode() {} */
annotation class Queue(val name: String)

enum class Priority(val weight: Int) {
    LOW(1) {
        override fun label() = "low"
    },
    HIGH(2);

    open fun label(): String = name.lowercase()

    companion object {
        fun of(weight: Int): Priority? =
            entries.firstOrNull { it.weight == weight }
    }
}

sealed interface Outcome {
    data class Sent(val id: Long) : Outcome
    data object Lost : Outcome
    class Failed(
        val reason: String,
        val tries: Int = 0,
    ) : Outcome, Comparable<Failed> {
        override fun compareTo(other: Failed): Int = tries - other.tries
    }
}

fun interface Sender {
    fun send(letter: String): Outcome
}

abstract class Mailer<T : Any>
@Deprecated("use Post")
internal constructor(
    private val sender: Sender,
    private val onError: (Throwable) -> Unit = { println("$it }") },
) : AutoCloseable where T : CharSequence {
    constructor(sender: Sender) : this(sender, {})

    protected abstract val folder: String
    val size: Int
        get() = letters.size
    private val letters = mutableListOf<String>()

    abstract fun open(): Boolean
    abstract fun flush()

    suspend inline fun <reified R> retry(times: Int, crossinline block: suspend () -> R): R {
        repeat(times) {
            fun wait(step: Int) {
                Thread.sleep(step * 10L)
            }
            wait(it)
        }
        val local = 1
        return block()
    }

    override fun close() {
        val listener = object : Runnable {
            override fun run() {
                flush()
            }
        }
        listener.run()
    }

    operator fun get(at: Int): String = letters[at]

    inner class Draft {
        fun text() = """
            fun inString() {
            ${letters.joinToString { "{" }}
        """
    }
}

object Registry : Sender {
    override fun send(letter: String) = Outcome.Sent(1)
}

fun String.isLetter(): Boolean = this::class.java.name != ""

fun <K, V> Map<K, List<V>>.flat(): List<V> =
    values
        .flatten()

val String.initial: Char
    get() = first()

fun `names with spaces`() {
    check(1 < 2)
}

internal class Empty
operator fun (() -> Unit).unaryPlus() = $$"""${""" + $$"{"
fun last() = Unit
