/** Ports that usually connect threads, with both ends in one thread. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { afterEach } from 'vitest'
import { until } from '../support/until.ts'

const transferred: MessagePort[] = []

/** Transfers a port as if to a thread, but to this thread, so that a test sees both ends. */
export function transfer(port: MessagePort): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port1.postMessage(port, [port])
  const { message } = receiveMessageOnPort(port2)!
  port1.close()
  transferred.push(message)
  return message
}

/** Lets every posted message arrive. */
export async function messagesArrived(): Promise<void> {
  for (let i = 0; i < 20; i++) await nextTurn()
}

const openPorts = () => process.getActiveResourcesInfo().filter((name) => name === 'MessagePort').length

/** Fails each test of the file that leaves a port open. */
export function noPortsLeft(): void {
  afterEach(async ({ task }) => {
    // Without this, a failure would be reported only after a wait for the ports that the test left open.
    if (task.result?.state === 'fail') for (const port of transferred) port.close()
    transferred.length = 0
    await until(() => openPorts() === 0)
  })
}
