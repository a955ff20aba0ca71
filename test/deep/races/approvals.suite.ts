import { expect } from 'chai';
import { openConfirmation } from '../../support/chained-artefacts.ts';
import { type RacedSuite, tally, times } from '../../support/raced-services.ts';

const CALLERS = 50;

export const approvals: RacedSuite = [
  'An approval of an unverified wallet',
  (racing) => {
    it('gives one code to 50 of the same, and none beside a denial', async () => {
      const { service, token, wallet } = racing();
      const upstream = { issuer: 'http://127.0.0.1:9', clientId: 'client' };
      const json = { display: [{ name: 'Acme', locale: 'en' }], chainedAs: { upstream } };
      expect((await service.call('POST', '/issuer/config', { token, json })).status).to.equal(201);
      for (const decisions of [['approve'], ['approve', 'deny']]) {
        const { confirmation, confirmationCookie } = await openConfirmation(service, wallet.tenant, 'pid');
        const answers = await times(CALLERS, (index) =>
          service.call('POST', `/${wallet.tenant}/chained-as/confirm`, {
            form: { confirmation, decision: decisions[index % decisions.length] ?? '' },
            headers: { Cookie: confirmationCookie },
          }),
        );
        expect(tally(answers), answers[0]?.text).to.deep.equal({ 303: 1, 400: CALLERS - 1 });
      }
    });
  },
];
