import { expect } from 'chai';
import { MAX_UNUSED_LISTS, StatusListCreation } from '../../domain/status-lists/list-definition.ts';
import { expectNamed, readPage } from '../support/docs-page.ts';
import { created, credentialBody } from '../support/populated.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PAGE = readPage('status-lists.md');

describe('the page about status lists', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('can be followed: every request is taken, in its order', async () => {
    const { token } = await createTenant(service, 'acme');
    await created(service, token, '/issuer/credentials', credentialBody('student', 'signing'));
    let listId = '';
    for (const { method, path, text } of PAGE.requests) {
      const json = JSON.parse(text);
      const answer = await service.call(method, path.replace('<listId>', listId), { token, json });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(method === 'POST' ? 201 : 200);
      expect(answer.body).to.include(json);
      if (method === 'POST') listId = answer.body.id;
    }
    expect((await service.call('DELETE', `/status-lists/${listId}`, { token })).status).to.equal(204);
  });

  it('names what a list is made of, and the bound that holds', () => {
    expectNamed(PAGE, Object.keys(StatusListCreation.shape));
    expect(PAGE.text).to.contain(`${MAX_UNUSED_LISTS} lists that nothing uses`);
  });
});
