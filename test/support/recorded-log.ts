import fs from 'node:fs';
import sinon from 'sinon';
import type { PinoLog } from '../../adapters/system/pino-log.ts';
import { Log } from '../../application/ports/log.ts';
import type { TestService } from './test-service.ts';

export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string; readonly level: string };

/** Captures the log lines that services of this process write to standard output. */
export class CapturedLog {
  readonly #texts: string[] = [];
  readonly #restore: () => void;

  constructor() {
    const capture =
      (originalWrite: (...values: never[]) => unknown, respond: (values: unknown[], length: number) => unknown) =>
      (...values: unknown[]) => {
        const [fd, text] = values;
        if (fd !== 1) return originalWrite(...(values as never[]));
        this.#texts.push(String(text));
        return respond(values, Buffer.byteLength(String(text)));
      };
    const { write, writeSync } = fs;
    const stubs = [
      sinon.stub(fs, 'write').callsFake(
        capture(write as never, (values, length) => {
          const callback = values.at(-1) as (error: null, written: number) => void;
          setImmediate(() => callback(null, length));
        }) as never,
      ),
      sinon.stub(fs, 'writeSync').callsFake(capture(writeSync as never, (_given, length) => length) as never),
    ];
    this.#restore = () => {
      for (const stub of stubs) stub.restore();
    };
  }

  /** All lines so far, including buffered ones. */
  lines(service: TestService): readonly LogLine[] {
    const log = service.service.container.get(Log) as PinoLog;
    log.flush();
    const text = this.#texts.join('');
    return text.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as LogLine] : []));
  }

  close(): void {
    this.#restore();
  }
}
