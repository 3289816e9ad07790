import type { Snapshot } from '../../config/types.js';
import { leadingField } from '../../wire/form-data.js';
import { type FormPart, type MultipartLimits, readForm } from '../../wire/multipart.js';
import { boundaryOf } from '../../wire/multipart-type.js';
import { PartNames, type PartRules } from '../../wire/part-names.js';
import type { Call, OpenedForm, UploadBody } from '../call.js';

/** A form whose whole body is in memory. */
export class WholeForm implements UploadBody {
  readonly contentType: string;
  readonly canReplay = true;
  readonly parts: readonly FormPart[];
  readonly #boundary: string;
  readonly #body: Buffer;

  /**
   * @param body of a call with a form
   * @throws {GatewayError} if the body is not a form, or has parts with ambiguous names
   */
  constructor(call: Call, body: Buffer, rules: PartRules) {
    const boundary = boundaryOf(call.exchange.head.contentType);
    this.contentType = `multipart/form-data; boundary="${boundary}"`;
    this.parts = readForm(body, boundary, formLimits(call.running.snapshot));
    const names = new PartNames(rules);
    call.steering = this.parts.flatMap(({ name }) => names.add(name) ?? []);
    this.#boundary = boundary;
    this.#body = body;
  }

  open(model: string | null, dropped: string | null): OpenedForm {
    const body: Buffer[] = [];
    let from = 0;
    let partEnd = 0;
    let isNamed = model === null;
    for (const { name, data } of this.parts) {
      const start = data.byteOffset - this.#body.byteOffset;
      const end = start + data.length;
      if (name === dropped) {
        // Its boundary is the one before it. What follows begins with the line end before the next boundary.
        body.push(this.#body.subarray(from, partEnd));
        from = end;
      } else if (!isNamed && name === 'model') {
        body.push(this.#body.subarray(from, start), Buffer.from(model ?? ''));
        from = end;
        isNamed = true;
      }
      partEnd = end;
    }
    body.push(this.#body.subarray(from));
    if (isNamed || model === null) return { body, source: null };
    const [first] = body.find((piece) => piece.length > 0) ?? [];
    const field = leadingField(this.#boundary, { name: 'model', value: model, firstByte: first });
    return { body: [field, ...body], source: null };
  }
}

const mostParts = 128;
const partHeadBytes = 8 * 1024;
/** A prompt of 32,000 characters at four bytes each fits. */
const fieldBytes = 256 * 1024;

/** Returns the limits of forms. */
export function formLimits({ limits }: Snapshot): MultipartLimits {
  return { parts: mostParts, headerBytes: partHeadBytes, fieldBytes, fileBytes: limits.uploadBytes };
}
