import { expect } from 'chai';
import { PageSettings } from '../../domain/issuance/page-settings.ts';
import { expectNamed, readPage } from '../support/docs-page.ts';
import { created } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('the page about pages for users', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('shows requests that are taken, and a page comes of them', async () => {
    const page = readPage('pages-for-users.md', 2);
    expectNamed(page, Object.keys(PageSettings.shape));
    const { token } = await createTenant(service, 'acme');
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Student card', locale: 'en' }] };
    const student = { id: 'student', config, vct: 'urn:acme:student:1', claims: { name: 'Ada' } };
    await created(service, token, '/issuer/credentials', student);
    const [look, offer] = page.requests;
    const written = await created(service, token, '/issuer/config', JSON.parse(look?.text ?? ''));
    expect(JSON.stringify(written.warnings)).to.not.include('pages.');
    const { pageUrl } = await created(service, token, '/issuer/offer', JSON.parse(offer?.text ?? ''));
    const shown = await service.call('GET', new URL(pageUrl).pathname);
    expect(shown.status).to.equal(200);
    expect(shown.text)
      .to.include('Ministry of Examples')
      .and.include('<img src="data:image/svg+xml,')
      .and.include('https://ministry.example/privacy');
  });
});
