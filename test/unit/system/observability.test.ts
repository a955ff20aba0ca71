import fs from 'node:fs';
import { TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect } from 'chai';
import sinon from 'sinon';
import { PinoLog } from '../../../adapters/system/pino-log.ts';
import { OwnSampler } from '../../../adapters/system/traces/collector.ts';
import { OtelTraces } from '../../../adapters/system/traces/otel-traces.ts';

const REQUESTS = 2_000;
/** Trace ids of which a sampler by id keeps all or none. */
const EXTREME_IDS = ['00000000000000000000000000000001', 'ffffffffffffffffffffffff00000000'];

describe('trace sampling', () => {
  const samplingDecisions = (sampler: TraceIdRatioBasedSampler | OwnSampler, traceId: string) => {
    const provider = new TracerProvider({ sampler });
    const traces = new OtelTraces(provider.getTracer('test'));
    const flags = Array.from({ length: REQUESTS }, () => {
      const request = traces.begin('GET', '/', `00-${traceId}-00f067aa0ba902b7-01`);
      const outer = request.within(() => traces.headers()['traceparent']?.slice(-2));
      const inner = request.within(() => traces.span('part', {}, () => traces.headers()['traceparent']?.slice(-2)));
      expect(inner).to.equal(outer);
      return outer;
    });
    return flags.filter((flag) => flag === '01').length / REQUESTS;
  };

  it('cannot be chosen by callers with a trace id', () => {
    for (const traceId of EXTREME_IDS) expect(samplingDecisions(new OwnSampler(0.1), traceId), traceId).to.be.within(0.05, 0.15);
  });

  it('keeps all or no traces if configured', () => {
    for (const traceId of EXTREME_IDS) {
      expect(samplingDecisions(new OwnSampler(1), traceId)).to.equal(1);
      expect(samplingDecisions(new OwnSampler(0), traceId)).to.equal(0);
    }
  });

  it('could be chosen by callers with the sampler of OpenTelemetry', () => {
    expect(samplingDecisions(new TraceIdRatioBasedSampler(0.1), EXTREME_IDS[0] as string)).to.equal(1);
  });
});

/** The number of bytes that Linux writes to a pipe atomically (pipe(7), PIPE_BUF). */
const PIPE_BUF = 4096;

describe('log of a process that shares its output with others', () => {
  it('is written in blocks of complete lines', async () => {
    const blocks: string[] = [];
    const write = sinon.stub(fs, 'write').callsFake(((_: number, text: Buffer, ...rest: unknown[]) => {
      blocks.push(String(text));
      const done = rest.at(-1) as (error: null, bytes: number) => void;
      setImmediate(() => done(null, text.length));
    }) as never);
    const log = new PinoLog({ level: 'info', version: '1', sharesOutput: true });
    try {
      for (let line = 0; line < 500; line++) log.info('request', { route: `/ö/${'x'.repeat(line % 300)}` });
      while (blocks.join('').split('\n').length < 480) await new Promise((resolve) => setImmediate(resolve));
    } finally {
      write.restore();
      sinon.stub(fs, 'writeSync').callsFake(((_: number, text: Buffer) => text.length) as never);
      await log.close();
      sinon.restore();
    }
    expect(blocks.filter((block) => Buffer.byteLength(block) > PIPE_BUF)).to.deep.equal([]);
    expect(blocks.filter((block) => !block.startsWith('{') || !block.endsWith('}\n'))).to.deep.equal([]);
  });
});
