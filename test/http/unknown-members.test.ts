import { expect } from 'chai';
import { addClient, type Populated, populate } from '../support/populated.ts';
import { startTestService, type TestService } from '../support/test-service.ts';
import { ThreadHolds } from '../support/thread-holds.ts';

/** What reading as many members takes anyway, with room for slow machines. */
const LIMIT_MS = 400;

describe('A document with very many members that nobody knows', () => {
  let service: TestService;
  let world: Populated;
  const holds = new ThreadHolds();

  before(async () => {
    service = await startTestService();
    world = await populate(service, 'acme');
  });
  after(async () => {
    await holds.close();
    await service.close();
  });

  it('of a client that may do little does not hold up other tenants', async () => {
    const token = await addClient(world, 'offers', { roles: ['issuance:offer'] });
    const members = Array.from({ length: 80_000 }, (_, index) => `"a${index}":1`);
    const sent = {
      address: `${service.address}/issuer/deferred/x/complete`,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: `{${members.join(',')}}`,
    };
    const { status, milliseconds } = await holds.of(() => sent, LIMIT_MS);
    expect(status).to.equal(400);
    expect(milliseconds).to.be.below(LIMIT_MS);
  });
});
