import { Failure } from '../../domain/shared/failure.ts';
import { rootAccessClaims } from '../clients/issue-access-token.ts';
import { needs } from '../needs.ts';
import { AccessTokens } from '../ports/access-tokens.ts';
import { Log } from '../ports/log.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { ConsoleTickets } from './console-tickets.ts';

/** Exchanges a ticket that the start printed for an access token of the root client. */
export class RedeemConsoleTicket extends needs({
  tickets: ConsoleTickets,
  accessTokens: AccessTokens,
  settings: ServiceSettings,
  log: Log,
}) {
  /** @throws Failure `unauthenticated` for an unknown, used or expired ticket. */
  async execute(ticket: string): Promise<{ token: string; expiresInSeconds: number }> {
    const { tickets, accessTokens, settings, log } = this.ports;
    if (accessTokens.externalIssuer !== undefined || !tickets.redeem(ticket)) {
      throw new Failure(
        'unauthenticated',
        'this link was used or has expired: log in with a client, or restart the service for another link',
      );
    }
    log.note({ clientId: settings.rootClient.clientId });
    return accessTokens.issue(rootAccessClaims(settings));
  }
}
