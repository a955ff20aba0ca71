import { expect } from 'chai';
import { ConsoleTickets } from '../../../application/console/console-tickets.ts';
import { RedeemConsoleTicket } from '../../../application/console/redeem-console-ticket.ts';
import type { AccessTokens } from '../../../application/ports/access-tokens.ts';
import { codeOf } from '../administration/world.ts';
import { aClientWorld, type ClientWorld } from './kit.ts';

describe('A ticket for the console', () => {
  let world: ClientWorld;
  let tickets: ConsoleTickets;
  beforeEach(async () => {
    world = await aClientWorld();
    tickets = new ConsoleTickets(world.clock);
  });

  const redeem = (ticket: string, accessTokens: AccessTokens = world.accessTokens) =>
    new RedeemConsoleTicket({ ...world, tickets, accessTokens }).execute(ticket);

  it('gives the token of the built-in client, once', async () => {
    const ticket = tickets.issue();
    const { token } = await redeem(ticket);
    const access = await world.accessTokens.verify(token);
    expect(access).to.deep.include({ clientId: 'root', subject: 'root', roles: ['tenants:manage'] });
    expect(await codeOf(redeem(ticket))).to.equal('unauthenticated');
  });

  it('gives nothing when nobody gave it out, or after half an hour', async () => {
    expect(await codeOf(redeem('a guess'))).to.equal('unauthenticated');
    const ticket = tickets.issue();
    world.clock.forward(30 * 60_000);
    expect(await codeOf(redeem(ticket))).to.equal('unauthenticated');
  });

  it('gives nothing where a provider gives tokens', async () => {
    const elsewhere = { issuedElsewhere: 'https://id.example' } as AccessTokens;
    expect(await codeOf(redeem(tickets.issue(), elsewhere))).to.equal('unauthenticated');
  });
});
