import { ApiFailure } from '../api/call.ts';
import { choose, crossed, current } from '../shell/identities.ts';
import { place } from '../shell/place.ts';

export function Problem({ fault }: { readonly fault: unknown }) {
  const message = fault instanceof Error ? fault.message : String(fault);
  const errors = fault instanceof ApiFailure ? fault.errors : [];
  // One fault of one member is often all that the sentence says.
  const isSaid = errors.length === 1 && errors.every(({ message: what }) => message.endsWith(what));
  const more = isSaid ? [] : errors;
  return (
    <div role="alert" class="problem">
      <p>{message}</p>
      {fault instanceof ApiFailure && fault.status === 404 && <OfAnother />}
      {fault instanceof ApiFailure && (
        <>
          {more.length > 0 && (
            <ul>
              {more.map(({ path, message: what }) => (
                <li key={`${path} ${what}`}>
                  <code>{path}</code> {what}
                </li>
              ))}
            </ul>
          )}
          <p class="fine">
            {fault.status} {fault.code}
            {fault.requestId !== '' && (
              <>
                {' · request '}
                <code>{fault.requestId}</code>
              </>
            )}
          </p>
        </>
      )}
    </div>
  );
}

function OfAnother() {
  const { from, at } = crossed.value ?? {};
  const isHere = at !== undefined && at.page === place.value.page && at.id === place.value.id;
  if (from === undefined || !isHere || from.clientId === current.value?.clientId) return null;
  return (
    <p>
      It belongs to {from.tenantId ?? 'the service'}, as whose client you opened it.{' '}
      <button type="button" class="quiet small" onClick={() => choose(from.clientId)}>
        Go back to being {from.clientId}
      </button>
    </p>
  );
}
