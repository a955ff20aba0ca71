import { ask } from '../../api/call.ts';
import { Confirm } from '../../parts/confirm.tsx';
import type { Identity } from '../../shell/identities.ts';
import type { DeliveryRecord } from './session-record.ts';

type Props = {
  readonly identity: Identity;
  readonly id: string;
  readonly delivery: DeliveryRecord;
  /** Is told what came of it. */
  readonly again: (now: DeliveryRecord) => void;
};

/** Makes one delivery again, as the backend would have got it. */
export function Resend({ identity, id, delivery, again }: Props) {
  const act = async () => {
    const path = `/session/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(delivery.id)}/retry`;
    const now = await ask<DeliveryRecord>(identity, 'POST', path);
    again(now);
    return `The delivery is ${now.result}.`;
  };
  return (
    <Confirm label="Resend" about={`${delivery.webhook} of ${id.slice(0, 8)}`} title="Make this delivery again" act={act}>
      <p>The backend gets the same call with the same Idempotency-Key.</p>
    </Confirm>
  );
}
