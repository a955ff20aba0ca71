import { AsyncLocalStorage } from 'node:async_hooks';
import { type Logger, pino } from 'pino';
import { Log, type LogContext, type LogFields } from '../../application/ports/log.ts';

/** Bytes that wait for one write, and bytes of one write at most. A write costs as much as ten lines. */
const BLOCK = { minLength: 16_384, maxWrite: 32_768 };
/** What Linux writes to a pipe in one piece is 4096 bytes: lines of processes that share an output do not run into each other. */
const SHARED_BLOCK = { minLength: 3_072, maxWrite: 4_096 };
/** How long a line waits at most. */
const FLUSH_MS = 500;

/** Structured log lines as JSON on standard output, written in blocks: a write per line costs more than the line. */
export class PinoLog extends Log {
  readonly #logger: Logger;
  readonly #end: () => void;
  readonly #flush: () => void;
  readonly #contexts = new AsyncLocalStorage<LogContext>();

  /** @param settings `sharesOutput`: whether other processes of the service write where this one does. */
  constructor(settings: { readonly level: string; readonly version: string; readonly sharesOutput?: boolean }) {
    super();
    const block = settings.sharesOutput === true ? SHARED_BLOCK : BLOCK;
    const destination = pino.destination({ dest: 1, sync: false, contentMode: 'buffer', ...block });
    const timer = setInterval(() => destination.flush(), FLUSH_MS);
    timer.unref();
    this.#flush = () => destination.flushSync();
    this.#end = () => {
      clearInterval(timer);
      destination.flushSync();
    };
    const options = {
      level: settings.level,
      base: { service: 'vidimus', version: settings.version },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
    };
    // As texts, all lines of a block would be copied together with each line that comes to them.
    const write = (line: string) => void destination.write(Buffer.from(line) as never);
    this.#logger = pino(options, { write });
  }

  /** Writes what still waits. */
  flush(): void {
    this.#flush();
  }

  /** Writes what still waits, and nothing of itself any more. */
  close(): void {
    this.#end();
  }

  override info(message: string, fields: LogFields = {}): void {
    this.#logger.info(this.#with(fields), message);
  }

  override warn(message: string, fields: LogFields = {}): void {
    this.#logger.warn(this.#with(fields), message);
  }

  override error(message: string, fields: LogFields = {}, cause?: unknown): void {
    this.#logger.error({ ...this.#with(fields), ...describe(cause) }, message);
  }

  override within<T>(about: LogContext, work: () => T): T {
    return this.#contexts.run(about, work);
  }

  override note(fields: LogFields): void {
    const about = this.#contexts.getStore();
    if (about !== undefined) Object.assign(about, fields);
  }

  #with(fields: LogFields): LogFields {
    const about = this.#contexts.getStore();
    return about === undefined ? fields : { ...about, ...fields };
  }
}

/** Name, message and stack of our own errors; a driver's error can quote values, so only its code is kept. */
function describe(cause: unknown): LogFields {
  if (!(cause instanceof Error)) return {};
  const { code } = cause as { code?: unknown };
  if (typeof code === 'string' && cause.name !== 'Error') return { error: cause.name, errorCode: code, stack: frames(cause) };
  return { error: cause.name, errorMessage: firstLine(cause.message), stack: frames(cause) };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.slice(0, 300) ?? '';
}

function frames(error: Error): string {
  return (error.stack ?? '')
    .split('\n')
    .filter((line) => line.trimStart().startsWith('at '))
    .slice(0, 12)
    .join('\n');
}
