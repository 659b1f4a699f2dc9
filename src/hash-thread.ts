/**
 * The entry point of a hash thread: the SHA-256 of bodies and files, beside the threads that render them.
 *
 * It takes 0.35 s for 517 MB. The thread that renders them was busy for 1.08 s when it hashed, too, and is for 0.79 s.
 * One hash thread serves many exports, chunk by chunk in the order in which they arrive; the window of a channel limits
 * how many chunks of one export may wait here.
 */
import { constants, setPriority } from 'node:os'

// As export threads, whose work it shares.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL)

export { hashChunks } from './threads/channel.ts'
