import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = 'https://wallet.example';

describe('scripts of pages elsewhere', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
    await createTenant(service, 'acme');
  });
  after(() => service.close());

  const preflight = (path: string, method: string) =>
    fetch(service.address + path, {
      method: 'OPTIONS',
      headers: {
        Origin: PAGE,
        'Access-Control-Request-Method': method,
        'Access-Control-Request-Headers': 'authorization,content-type,dpop',
      },
    });

  const WALLET_ROUTES: readonly (readonly [string, string])[] = [
    ['POST', '/acme/token'],
    ['POST', '/acme/par'],
    ['POST', '/acme/challenge'],
    ['POST', '/acme/nonce'],
    ['POST', '/acme/credential'],
    ['POST', '/acme/deferred_credential'],
    ['POST', '/acme/notification'],
    ['POST', '/acme/interactive-authorization'],
    ['POST', '/acme/chained-as/token'],
    ['POST', '/acme/request/x'],
    ['POST', '/acme/response/x'],
    ['POST', '/acme/dc-api/x'],
    ['GET', '/acme/credential-offer/x'],
    ['GET', '/acme/request/x'],
    ['GET', '/acme/status-list/x'],
    ['GET', '/acme/trust-list/x'],
    ['GET', '/.well-known/openid-credential-issuer/acme'],
    ['GET', '/.well-known/oauth-authorization-server/acme'],
    ['GET', '/acme/.well-known/jwks.json'],
  ];

  for (const [method, path] of WALLET_ROUTES) {
    it(`may call ${method} ${path} as wallets do, and read the answer`, async () => {
      const asked = await preflight(path, method);
      expect(asked.status).to.equal(204);
      expect(asked.headers.get('access-control-allow-origin')).to.equal('*');
      expect(asked.headers.get('access-control-allow-credentials')).to.equal(null);
      expect(asked.headers.get('access-control-allow-methods')).to.include(method);
      for (const name of ['Authorization', 'Content-Type', 'DPoP', 'OAuth-Client-Attestation']) {
        expect(asked.headers.get('access-control-allow-headers')).to.include(name);
      }
      const answer = await fetch(service.address + path, { method, headers: { Origin: PAGE } });
      expect(answer.headers.get('access-control-allow-origin'), 'refusals, too').to.equal('*');
      for (const name of ['DPoP-Nonce', 'WWW-Authenticate', 'Retry-After']) {
        expect(answer.headers.get('access-control-expose-headers')).to.include(name);
      }
    });
  }

  for (const [method, path] of [
    ['POST', '/oauth2/token'],
    ['GET', '/tenant'],
    ['POST', '/tenant'],
    ['GET', '/session'],
    ['POST', '/issuer/offer'],
    ['POST', '/verifier/offer'],
    ['DELETE', '/key-chain/x'],
    ['GET', '/acme/authorize'],
    ['POST', '/acme/authorize'],
    ['GET', '/health'],
  ] as const) {
    it(`may not call ${method} ${path}`, async () => {
      const asked = await preflight(path, method);
      expect(asked.headers.get('access-control-allow-origin')).to.equal(null);
      expect(asked.headers.get('access-control-allow-headers')).to.equal(null);
      const answer = await fetch(service.address + path, { method, headers: { Origin: PAGE } });
      expect(answer.headers.get('access-control-allow-origin')).to.equal(null);
    });
  }
});
