import { z } from 'zod';
import { listenAddress, ratio, wholeNumber } from './setting-values.ts';

/** Where operators look at numbers and traces. */
export const MONITORING = {
  METRICS_ADDRESS: listenAddress
    .optional()
    .describe(
      'Where `GET /metrics` is answered for Prometheus, apart from the service and without a token: a port, for this machine alone, or `0.0.0.0:9464`; see docs/monitoring.md',
    ),
  METRICS_TOKEN: z
    .string()
    .min(16, 'at least 16 characters')
    .max(256)
    .optional()
    .describe(
      'Bearer token with which the service itself answers `GET /metrics`; without one it does not. At least 16 characters',
    ),
  METRICS_TENANTS: wholeNumber(0, 1_000)
    .default(0)
    .describe(
      'Tenants that metrics tell apart by name, at most; all others are `others` together. 0: no tenant is named',
    ),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'Collector that traces are sent to (OTLP over HTTP); without it there are none. See docs/monitoring.md',
    ),
  OTEL_TRACES_SAMPLER_ARG: ratio.default(1).describe('Part of the traces that is kept, from 0 to 1'),
};
