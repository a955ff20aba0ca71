import { Failure } from '../../domain/shared/failure.ts';
import { rootAccess } from '../clients/issue-access-token.ts';
import { needs } from '../needs.ts';
import { AccessTokens } from '../ports/access-tokens.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { ConsoleTickets } from './console-tickets.ts';

/** Gives the person who started the service the token of its built-in client, for a ticket that the start printed. */
export class RedeemConsoleTicket extends needs({
  tickets: ConsoleTickets,
  accessTokens: AccessTokens,
  settings: ServiceSettings,
  log: Log,
}) {
  /** @throws Failure `unauthenticated` for a ticket that nobody gave out, that was used, or that is too old. */
  async execute(ticket: string): Promise<{ token: string; expiresInSeconds: number }> {
    const { tickets, accessTokens, settings, log } = this.ports;
    if (accessTokens.issuedElsewhere !== undefined || !tickets.redeem(ticket)) {
      throw new Failure('unauthenticated', 'this link was used, or is too old: log in with a client, or restart the service for another');
    }
    log.note({ clientId: settings.rootClient.clientId });
    return accessTokens.issue(rootAccess(settings));
  }
}
