import { createHash, timingSafeEqual } from 'node:crypto';
import { Failure } from '../../../domain/shared/failure.ts';
import { type Route, route } from '../route.ts';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

type Metrics = {
  /** Token of the metrics reader, which is not a client of the service. */
  readonly token: string;
  readonly read: () => Promise<string>;
};

export function metricsRoutes({ token, read }: Metrics): readonly Route[] {
  const expectedHash = hashOf(`Bearer ${token}`);
  return [
    route({
      tag: 'Service',
      surface: 'admin',
      access: 'public',
      method: 'get',
      path: '/metrics',
      operationId: 'getMetrics',
      summary: 'Metrics for Prometheus',
      responses: { 200: { description: 'Text format of Prometheus', contentType: CONTENT_TYPE } },
      async handle({ request }) {
        if (!timingSafeEqual(hashOf(request.headers.authorization ?? ''), expectedHash))
          throw new Failure('unauthenticated', 'the token of METRICS_TOKEN is required');
        return { status: 200, text: await read(), contentType: CONTENT_TYPE };
      },
    }),
  ];
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
