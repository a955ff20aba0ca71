import { expect } from 'chai';
import { addClient, created } from '../../support/populated.ts';
import { type RacedSuite, tally, times } from '../../support/raced-services.ts';
import { createTenant } from '../../support/test-service.ts';

export const administration: RacedSuite = [
  'Administrators at the same time',
  (racing) => {
    it('leave one secret valid after many rotations', async () => {
      const { service, token } = racing();
      await created(service, token, '/client', { clientId: 'rotated', roles: ['issuance:offer'] });
      const answers = await times(10, () => service.call('POST', '/client/rotated/rotate-secret', { token }));
      const { 201: made = 0, '409 conflict': refused = 0 } = tally(answers);
      expect(made + refused, JSON.stringify(tally(answers))).to.equal(10);
      expect(made).to.be.greaterThan(0);
      // One after the other: many attempts on one client at once are refused.
      const logins: typeof answers = [];
      for (const { status, body } of answers) {
        if (status !== 201) continue;
        const json = { grant_type: 'client_credentials', client_id: 'rotated', client_secret: body.secret };
        logins.push(await service.call('POST', '/oauth2/token', { json }));
      }
      const { 200: good = 0, '401 invalid_client': bad = 0 } = tally(logins);
      expect([good, bad]).to.deep.equal([1, made - 1]);
    });

    it('create a tenant once', async () => {
      const { service } = racing();
      const token = await service.rootToken();
      const json = { id: 'wanted', name: 'Wanted', roles: ['clients:manage'] };
      const answers = await times(10, () => service.call('POST', '/tenant', { token, json }));
      expect(tally(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
      const winner = answers.find(({ status }) => status === 201);
      const tenants = await service.call('GET', '/tenant', { token });
      expect(tenants.body.filter(({ id }: { id: string }) => id === 'wanted')).to.have.length(1);
      expect(winner?.body.id).to.equal('wanted');
    });

    it('create a client once', async () => {
      const { service, token } = racing();
      const json = { clientId: 'wanted', roles: ['issuance:offer'] };
      const answers = await times(10, () => service.call('POST', '/client', { token, json }));
      expect(tally(answers)).to.deep.equal({ 201: 1, '409 conflict': 9 });
    });

    it('write one configuration as if they came one after the other', async () => {
      const { service, token } = racing();
      const body = (lifeTime: number) => ({
        id: 'contested',
        lifeTime,
        dcql_query: { credentials: [{ id: 'x', format: 'dc+sd-jwt', meta: { vct_values: ['y'] } }] },
      });
      const answers = await times(20, (index) =>
        service.call('POST', '/verifier/config', { token, json: body(100 + index) }),
      );
      const { 201: made = 0, '409 conflict': refused = 0 } = tally(answers);
      expect(made + refused, JSON.stringify(tally(answers))).to.equal(20);
      const stored = await service.call('GET', '/verifier/config/contested', { token });
      expect(stored.body.lifeTime).to.be.within(100, 119);
    });

    it('delete a session once', async () => {
      const { service, token } = racing();
      const json = {
        response_type: 'uri',
        flow: 'pre_authorized_code',
        credentialConfigurationIds: ['pid'],
      };
      const { session } = await created(service, token, '/issuer/offer', json);
      const answers = await times(10, () => service.call('DELETE', `/session/${session}`, { token }));
      expect(tally(answers)).to.deep.equal({ 200: 1, '404 not_found': 9 });
    });

    it('change rights that no process misses afterwards', async () => {
      const { service, token } = racing();
      const client = await addClient({ service, token }, 'demoted', {
        roles: ['issuance:manage', 'clients:manage'],
      });
      for (let round = 0; round < 10; round++) {
        const roles = round % 2 === 0 ? ['issuance:manage'] : ['issuance:manage', 'clients:manage'];
        const changed = await service.call('PATCH', '/client/demoted', { token, json: { roles } });
        expect(changed.status).to.equal(200);
        const answers = await times(4, () => service.call('GET', '/client', { token: client }));
        expect(tally(answers)).to.deep.equal(round % 2 === 0 ? { '403 forbidden': 4 } : { 200: 4 });
      }
    });

    it('leave one key chain of a usage that something needs', async () => {
      const { service } = racing();
      const { token } = await createTenant(service, 'keepers');
      const badge = {
        id: 'badge',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] },
        vct: 'urn:badge:1',
      };
      await created(service, token, '/issuer/credentials', badge);
      let kept = 'signing';
      for (let round = 0; round < 8; round++) {
        const other = `signing-${round}`;
        await created(service, token, '/key-chain', { id: other, usages: ['signing'] });
        const ids = [kept, other];
        const answers = await times(2, (index) =>
          service.call('DELETE', `/key-chain/${ids[index]}`, { token }),
        );
        expect(tally(answers), `round ${round}`).to.deep.equal({ 200: 1, '409 conflict': 1 });
        kept = ids[answers.findIndex(({ status }) => status === 409)] ?? '';
      }
    });

    it('name no key chain in a configuration that goes at the same time', async () => {
      const { service } = racing();
      const { token } = await createTenant(service, 'namers');
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Badge', locale: 'en' }] };
      for (let round = 0; round < 8; round++) {
        const keyChainId = `own-${round}`;
        await created(service, token, '/key-chain', { id: keyChainId, usages: ['signing'] });
        const json = { id: `badge-${round}`, config, vct: 'urn:badge:1', keyChainId };
        const [removed, named] = await Promise.all([
          service.call('DELETE', `/key-chain/${keyChainId}`, { token }),
          service.call('POST', '/issuer/credentials', { token, json }),
        ]);
        expect([removed.status, named.status], `round ${round}`).to.be.deep.oneOf([
          [200, 400],
          [409, 201],
        ]);
      }
    });
  },
];
