import { parentPort, workerData } from 'node:worker_threads';
import { loadCryptoki } from './cryptoki.ts';
import { faultOf } from './fault.ts';
import type { Answer, Call, ThreadData } from './session-thread.ts';
import { TokenSession } from './token-session.ts';

/** Program of the thread: one session, which runs operations sequentially in the order of their messages. */
const { library } = workerData as ThreadData;
const session = new TokenSession(await loadCryptoki(library));

function answer({ operation, parameters }: Call): Answer {
  try {
    const work = session[operation] as (...given: unknown[]) => unknown;
    return { result: work.apply(session, parameters) };
  } catch (error) {
    const { kind, message, code } = faultOf(error);
    return { fault: { kind, message, code } };
  }
}

parentPort?.on('message', (call: Call) => parentPort?.postMessage(answer(call)));
