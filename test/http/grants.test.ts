import { expect } from 'chai';
import { addClient } from '../support/populated.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

describe('What one client gives another', () => {
  let service: TestService;
  let world: { service: TestService; token: string };
  let restricted: string;
  let keeper: string;

  before(async () => {
    service = await startTestService();
    const { token } = await createTenant(service, 'acme');
    world = { service, token };
    const mine = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    restricted = await addClient(world, 'restricted', {
      roles: ['clients:manage', 'issuance:offer'],
      ...mine,
    });
    keeper = await addClient(world, 'keeper', { roles: ['clients:manage'] });
  });
  after(() => service.close());

  const patch = (token: string, clientId: string, json: object) =>
    service.call('PATCH', `/client/${clientId}`, { token, json });
  const expectRefusal = (answer: Answer) =>
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([403, 'forbidden']);
  const expectDone = (answer: Answer) => expect(answer.status, answer.text).to.equal(200);

  it('is no role for configurations beyond its own', async () => {
    await addClient(world, 'wide', { roles: ['clients:manage'] });
    const roles = ['clients:manage', 'issuance:offer'];
    expectRefusal(await patch(restricted, 'wide', { roles }));
    expectRefusal(await patch(restricted, 'wide', { roles, allowedIssuanceConfigs: ['mine'] }));
    // It may not hold the secret of that client, so it changes nothing of it.
    expectRefusal(await patch(restricted, 'wide', { roles: ['clients:manage'], description: 'the same' }));
    const lists = { allowedIssuanceConfigs: ['mine'], allowedPresentationConfigs: ['mine'] };
    expectRefusal(await patch(restricted, 'wide', { roles, ...lists }));
    await addClient(world, 'narrow', { roles: ['clients:manage'], ...lists });
    expectDone(await patch(restricted, 'narrow', { roles, ...lists }));
  });

  it('is nothing for a client with roles that it lacks, and it takes nothing away', async () => {
    const [both, lists] = [['issuance:offer', 'issuance:manage'], { allowedIssuanceConfigs: ['a', 'b'] }];
    await addClient(world, 'issuer', { roles: both, ...lists });
    for (const wider of [null, [], ['a', 'b', 'c']])
      expectRefusal(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: wider }));
    expectRefusal(await patch(keeper, 'issuer', { roles: [...both, 'clients:manage'] }));
    // Both steps at once are no way round either.
    expectRefusal(await patch(keeper, 'issuer', { roles: ['clients:manage'], allowedIssuanceConfigs: null }));
    expectRefusal(await patch(keeper, 'issuer', { roles: both, allowedIssuanceConfigs: ['a'] }));
    expectRefusal(await patch(keeper, 'issuer', { roles: ['issuance:offer'], description: 'smaller' }));
    expectRefusal(await service.call('DELETE', '/client/issuer', { token: keeper }));
    expectDone(await service.call('DELETE', '/client/issuer', { token: world.token }));
  });

  it('is no name of an administrator of another tenant', async () => {
    const add = (clientId: string) =>
      service.call('POST', '/client', { token: world.token, json: { clientId, roles: ['issuance:offer'] } });
    const taken = await add('future-admin');
    expect([taken.status, taken.body.code], taken.text).to.deep.equal([400, 'invalid_input']);
    expect(taken.body.errors[0].path).to.equal('clientId');
    await createTenant(service, 'future');
    expectDone(await service.call('DELETE', '/client/acme-admin', { token: world.token }));
    const own = { clientId: 'acme-admin', roles: ['clients:manage'] };
    expect((await service.call('POST', '/client', { token: keeper, json: own })).status).to.equal(201);
  });
});
