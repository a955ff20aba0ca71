import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ConfigFolder, SECRETS } from '../support/config-folder.ts';
import { startTestService } from '../support/test-service.ts';

const PAGE = readFileSync(new URL('../../docs/configuration-files.md', import.meta.url), 'utf8');
const files = [...PAGE.matchAll(/^`(\S+)`\n```(?:json|yaml)\n([\s\S]*?)```$/gm)].map(
  ([, name = '', text = '']) => [name, text] as const,
);

describe('the example of configuration files', () => {
  it('can be imported as it stands', async () => {
    const service = await startTestService({
      CONFIG_FOLDER: fileURLToPath(new URL('../../config/examples', import.meta.url)),
      DEMO_BACKEND: 'http://localhost:8080',
      DEMO_API_KEY: 'key',
      OUTBOUND_ALLOW: 'localhost:8080',
    });
    try {
      const tenant = await service.call('GET', '/tenant/demo', { token: await service.rootToken() });
      expect(tenant.body.clients[0].clientId).to.equal('demo-admin');
      const metadata = await service.call('GET', '/demo/.well-known/openid-credential-issuer');
      expect(metadata.body.credential_configurations_supported).to.have.all.keys('pid', 'mdl');
    } finally {
      await service.close();
    }
  });
});

describe('the page about configuration files', () => {
  it('shows files that a service starts with', async () => {
    expect(files).to.have.length([...PAGE.matchAll(/^```(json|yaml)$/gm)].length);
    const folder = new ConfigFolder();
    folder.write(Object.fromEntries(files));
    const service = await startTestService({
      CONFIG_FOLDER: folder.path,
      ACME_ACCESS_KEY: SECRETS.ACME_ACCESS_KEY,
      ACME_LOGIN_SECRET: 'a secret at the login',
      ACME_BACKEND: 'https://backend.example',
      ACME_API_KEY: 'a-key',
      ACME_SHOP_SECRET: 'the-secret-of-the-shop',
    });
    try {
      const token = await service.token('acme-shop', 'the-secret-of-the-shop');
      const json = { response_type: 'uri', requestId: 'who' };
      const asked = await service.call('POST', '/verifier/offer', { token, json });
      expect(asked.status, asked.text).to.equal(201);
      const metadata = await service.call('GET', '/acme/.well-known/openid-credential-issuer');
      expect(metadata.body.credential_configurations_supported).to.have.property('badge');
    } finally {
      await service.close();
      folder.remove();
    }
  });
});
