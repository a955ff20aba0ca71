import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { ConfigFolder, SECRETS } from '../support/config-folder.ts';
import { startTestService } from '../support/test-service.ts';

const PAGE = readFileSync(new URL('../../docs/configuration-files.md', import.meta.url), 'utf8');
const files = [...PAGE.matchAll(/^`(\S+)`\n```(?:json|yaml)\n([\s\S]*?)```$/gm)].map(
  ([, name = '', text = '']) => [name, text] as const,
);

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
