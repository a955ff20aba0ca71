import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { type Logger, pino } from 'pino';
import { Log, type LogContext, type LogFields } from '../../application/ports/log.ts';

/** Bytes that are collected for one write, and the maximum of one write. A write costs as much as ten lines. */
const BLOCK = { minLength: 16_384, maxWrite: 32_768 };
/** Linux writes up to 4096 bytes to a pipe atomically, so lines of processes that share an output do not mix. */
const SHARED_BLOCK = { minLength: 3_072, maxWrite: 4_096 };
/** Maximum delay of a line. */
const FLUSH_MS = 500;
/** Maximum time for which `close` waits for a write. */
const CLOSE_MS = 2_000;

/** Structured log lines as JSON on standard output, written in blocks: a write per line costs more than the line. */
export class PinoLog extends Log {
  readonly #logger: Logger;
  readonly #end: () => Promise<void>;
  readonly #flush: () => void;
  readonly #contexts = new AsyncLocalStorage<LogContext>();

  /** @param settings `sharesOutput`: other processes of the service write to the same output. */
  constructor(settings: { readonly level: string; readonly version: string; readonly sharesOutput?: boolean }) {
    super();
    const block = settings.sharesOutput === true ? SHARED_BLOCK : BLOCK;
    const destination = pino.destination({ dest: 1, sync: false, contentMode: 'buffer', ...block });
    const timer = setInterval(() => destination.flush(), FLUSH_MS);
    timer.unref();
    this.#flush = () => destination.flushSync();
    this.#end = async () => {
      clearInterval(timer);
      // If the reader of the output has gone, pino ignores later writes once an asynchronous write failed; `flushSync` would repeat it for ever.
      const written = new Promise<void>((resolve) => destination.flush(() => resolve()));
      await Promise.race([written, pause(CLOSE_MS, undefined, { ref: false })]);
      destination.flushSync();
    };
    const options = {
      level: settings.level,
      base: { service: 'vidimus', version: settings.version },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label: string) => ({ level: label }) },
    };
    // As strings, all lines of a block would be copied again with each new line.
    const write = (line: string) => void destination.write(Buffer.from(line) as never);
    this.#logger = pino(options, { write });
  }

  /** Writes the buffered lines. */
  flush(): void {
    this.#flush();
  }

  /** Writes the buffered lines and stops the timer. */
  close(): Promise<void> {
    return this.#end();
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

  override within<T>(context: LogContext, work: () => T): T {
    return this.#contexts.run(context, work);
  }

  override note(fields: LogFields): void {
    const context = this.#contexts.getStore();
    if (context !== undefined) Object.assign(context, fields);
  }

  #with(fields: LogFields): LogFields {
    const context = this.#contexts.getStore();
    return context === undefined ? fields : { ...context, ...fields };
  }
}

/** Name, message and stack of the service's own errors; an error of a driver can quote values, so only its code is logged. */
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
