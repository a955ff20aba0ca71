import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { describeLimits } from '../../adapters/http/describe-limits.ts';
import { collectRoutes } from '../../bootstrap/routes.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

describe('the table of limits', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('is the one that the code makes', async () => {
    const text = readFileSync(new URL('../../docs/limits.md', import.meta.url), 'utf8');
    const [, table] = text.split(/<!-- \/?limits -->/);
    const document = (await service.call('GET', '/openapi.json')).body;
    const made = describeLimits(collectRoutes(service.service.container), document);
    expect(table?.trim(), '`npm run docs:limits` writes it anew').to.equal(made);
    for (const row of ['`POST /oauth2/token`', '`GET /session?limit`']) expect(made).to.include(row);
  });
});
