package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// driver calls the server as real drivers do: over a connection that it keeps to
// itself, and once more, without a word, when that breaks.
type driver struct {
	address string
	timeout time.Duration
}

func (d *driver) call(ctx context.Context, format string, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	request := fmt.Sprintf(format, args...)
	answer, err := d.try(ctx, request)
	if err != nil && ctx.Err() == nil {
		answer, err = d.try(ctx, request)
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return "", context.Canceled
	}
	if err != nil {
		return "", fmt.Errorf("calling the server of records: %w", err)
	}
	return answer, nil
}

func (d *driver) try(ctx context.Context, request string) (string, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	defer connection.Close()
	if _, err := fmt.Fprintln(connection, request); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return "", err
	}
	answer := strings.TrimSuffix(line, "\n")
	switch word, _, _ := strings.Cut(answer, " "); word {
	case "VALUE", answerOK, answerNone:
		return answer, nil
	default:
		return "", fmt.Errorf("the server says %q", answer)
	}
}
