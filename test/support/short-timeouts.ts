import sinon from 'sinon';
import { Remote } from '../../application/ports/remote.ts';
import type { TestService } from './test-service.ts';

const TIMEOUT_MS = 200;

/** Outgoing calls of the service time out after 200 ms instead of seconds, until `sinon.restore()`. */
export function shortenTimeouts({ service: { container } }: TestService): void {
  const remote = container.get(Remote);
  const request = remote.request.bind(remote);
  sinon.stub(remote, 'request').callsFake((url, options) => request(url, { ...options, timeoutMs: TIMEOUT_MS }));
}
